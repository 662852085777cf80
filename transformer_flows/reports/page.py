"""One self-contained HTML page for a run, and its figures as PNG files.

The page fetches nothing: pictures, numbers, plotly.js and styles are inside, and its content security policy forbids
the rest. It follows the reader's light or dark setting.
"""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import xarray as xr
from plotly.offline import get_plotlyjs

from .access import cases
from .gallery import DRAWINGS
from .interactive import TOKEN_BYTES, interactive_tokens
from .markup import claims_table, settings_table, summary_table
from .style import STYLE, png
from .table import summarise

CSS_DPI = 96


def write_report(
    data: xr.Dataset,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    folder: str | Path,
    *,
    claims: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """Write `folder/figures/NAME.png` for every figure that `data` feeds, and `folder/index.html`; return the latter.

    `data` may have the attributes `title`, `kind` and `source`. A claim is a dict with the keys source, statement,
    predicted, measured, error, low, high, verdict and fault, all optional.
    """
    folder = Path(folder)
    title = str(data.attrs.get("title", "")) or "Untitled run"
    pictures = _save_figures(data, folder / "figures", title)
    sections = [
        _section("Summary", summary_table(summarise(data))),
        _section("Claims", claims_table(claims)) if claims else "",
        _player(data) if _has_tokens(data) else "",
        _section("Figures", "\n".join(_figure(*picture) for picture in pictures)) if pictures else "",
        _section("How it was run", _details("Configuration", config) + _details("Provenance", provenance)),
    ]
    page = Template(_part("page.html")).substitute(
        title=escape(title),
        kind=escape(str(data.attrs.get("kind", ""))),
        source=escape(str(data.attrs.get("source", ""))),
        style=_part("page.css"),
        body="\n".join(filter(None, sections)),
        scripts=_scripts(data) if _has_tokens(data) else "",
    )
    path = folder / "index.html"
    partial = path.with_suffix(".partial")  # an interrupted run must not leave half a page that looks finished
    partial.write_text(page, encoding="utf-8")
    return partial.replace(path)


def _part(name: str) -> str:
    return resources.files("transformer_flows.reports").joinpath(name).read_text(encoding="utf-8")


def _save_figures(data: xr.Dataset, folder: Path, title: str) -> list[tuple[str, str, bytes]]:
    """Write the PNG files; return name, caption and picture. One figure is in memory at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = [(d.name, d.caption, png(d.plot(data), title)) for d in DRAWINGS if d.fed_by(data)]
    for name, _, picture in pictures:
        (folder / f"{name}.png").write_bytes(picture)
    return pictures


def _section(heading: str, body: str) -> str:
    return f"<section>\n<h2>{escape(heading)}</h2>\n{body}\n</section>"


def _figure(name: str, caption: str, picture: bytes) -> str:
    source = base64.b64encode(picture).decode("ascii")
    text = escape(caption)
    # bytes 16 to 19 of a PNG are its width; set so, letters have one size in all figures
    width = int.from_bytes(picture[16:20], "big") * CSS_DPI // STYLE["savefig.dpi"]
    return (
        f'<figure id="{escape(name)}"><img width="{width}" alt="{text}" src="data:image/png;base64,{source}">'
        f"<figcaption>{text}</figcaption></figure>"
    )


def _details(heading: str, settings: Mapping[str, Any]) -> str:
    return f"<details><summary>{escape(heading)}</summary>{settings_table(settings)}</details>"


def _has_tokens(data: xr.Dataset) -> bool:
    return "tokens" in data and data["tokens"].size > 0


def _player(data: xr.Dataset) -> str:
    """Return the place of the interactive view, with a choice of the number of heads if there are several."""
    options = "".join(f'<option value="{i}">{label}</option>' for i, label in enumerate(cases(data, "heads", "H")))
    choice = f'<label>Number of heads <select id="heads">{options}</select></label>\n'
    hint = " Drag to turn, scroll to zoom." if data.sizes["axis"] == 3 else ""
    return (
        '<section class="player">\n<h2>Tokens over depth</h2>\n'
        + (choice if data.sizes["heads"] > 1 else "")
        + '<div id="tokens"><noscript>The moving picture needs JavaScript.</noscript></div>\n'
        + f'<p class="notes">First path.{hint}</p>\n</section>'
    )


def _scripts(data: xr.Dataset) -> str:
    """Return plotly.js, one JSON block per number of heads, and the few lines that show them."""
    share = TOKEN_BYTES // data.sizes["heads"]
    blocks = [
        # "</" would end the script element; "<\/" is the same string in JSON
        f'<script type="application/json" id="tokens-{i}">'
        + str(interactive_tokens(data, int(heads), token_bytes=share).to_json()).replace("</", "<\\/")
        + "</script>"
        for i, heads in enumerate(data["heads"].to_numpy())
    ]
    return "\n".join([f"<script>{get_plotlyjs()}</script>", *blocks, f"<script>\n{_part('page.js')}</script>"])
