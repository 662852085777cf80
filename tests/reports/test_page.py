"""The page: one file that fetches nothing, whatever the run was."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import xarray as xr

from transformer_flows import reports
from transformer_flows.reports.interactive import TOKEN_BYTES
from transformer_flows.reports.markup import allowed, flatten, text
from transformer_flows.reports.style import STYLE

from .synthetic import diagram, equiangular, moving_heads

VOID = {"meta", "img", "br", "hr", "link", "input"}
CLAIMS = [
    {
        "source": "A 2026",
        "statement": "G² < 1 & falls",
        "predicted": -1.0,
        "measured": -0.93,
        "error": 0.02,
        "low": -1.1,
        "high": -0.8,
        "verdict": "holds",
    },
    {"statement": "<script>alert(1)</script>", "measured": np.float64(2), "high": 1.0, "verdict": "fails"},
    {"statement": "stopped", "fault": "ValueError: no", "measured": float("nan"), "verdict": "fails"},
]


@pytest.fixture(autouse=True, scope="module")
def coarse_pictures():
    """Pixels take time and are not what these tests look at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(STYLE, "savefig.dpi", 40)
        yield


class Page(HTMLParser):
    """Collects what a browser would fetch, the text, and the scripts; fails on tags that do not match."""

    def __init__(self, source: str):
        super().__init__(convert_charrefs=True)
        self.fetched, self.images, self.ids, self.words, self.json = [], [], [], [], {}
        self.open: list[tuple[str, dict]] = []
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.fetched += [given[name] for name in ("src", "href", "srcset", "data", "action") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        if tag == "img":
            self.images.append(given)
        if tag not in VOID:
            self.open.append((tag, given))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, given = self.open[-1] if self.open else ("", {})
        if given.get("type") == "application/json":
            self.json[given["id"]] = json.loads(data)
        elif tag not in ("script", "style"):
            self.words.append(data)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "größe"
    config = {"heads": np.array([1, 10]), "tokens": {"n": 12, "empty": {}}, "β": float("inf"), "name": "</script><b>"}
    path = reports.write_report(moving_heads(), config, {"jax": "0.10", "ünï": None}, folder, claims=CLAIMS)
    return folder, path, path.read_text(encoding="utf-8")


def test_page_is_self_contained(written):
    _, path, source = written
    page = Page(source)
    assert path.name == "index.html"
    assert page.fetched
    assert all(target.startswith("data:image/png;base64,") for target in page.fetched)
    assert "default-src 'none'" in source
    assert "@import" not in source.split("</style>")[0]
    assert "url(" not in source.split("</style>")[0]
    assert source.count("plotly.js v") == 1
    assert len(page.ids) == len(set(page.ids))


def test_every_figure_is_a_file_and_on_the_page_with_a_caption(written):
    folder, _, source = written
    page = Page(source)
    names = [drawing.name for drawing in reports.DRAWINGS if drawing.fed_by(moving_heads())]
    assert names == ["snapshots", "slope", "sweep", "balance", "energy", "clusters"]
    assert sorted(file.stem for file in (folder / "figures").iterdir()) == sorted(names)
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in (folder / "figures").iterdir())
    assert set(names) <= set(page.ids)
    assert len(page.images) == len(names)
    assert all(image["alt"] for image in page.images)


def test_page_says_what_the_run_was_and_escapes_it(written):
    source = written[2]
    words = "".join(Page(source).words)
    for expected in ("Köpfe auf S² — 头 <b>&amp;</b>", "Müller & Søn 2026", "mean G²", "tokens.n", "[1, 10]", "inf"):
        assert expected in words
    for expected in ("G² < 1 & falls", "-0.93 ± 0.02", "≤ 1", "<script>alert(1)</script>", "ValueError: no"):
        assert expected in words
    assert "<script>alert" not in source
    assert '<td class="good">holds</td>' in source
    assert '<td class="bad">fails</td>' in source


def test_one_block_of_frames_per_head_count(written):
    page = Page(written[2])
    assert set(page.json) == {"tokens-0", "tokens-1", "tokens-2"}
    figures = list(page.json.values())
    assert figures[0]["frames"] != figures[1]["frames"]
    assert all(len(figure["frames"]) == 6 for figure in figures)
    assert "heads" in page.ids


def test_tokens_take_less_than_two_megabytes(tmp_path):
    data = moving_heads(heads=(1, 10), paths=1, times=1, n=400, frames=300)[["tokens"]]
    source = reports.write_report(data, {}, {}, tmp_path).read_text(encoding="utf-8")
    frames = [frame for figure in Page(source).json.values() for frame in figure["frames"]]
    size = sum(len(axis["bdata"]) for frame in frames for axis in frame["data"][0].values() if isinstance(axis, dict))
    assert 0.5 * TOKEN_BYTES < size < TOKEN_BYTES


@pytest.mark.parametrize("data", [equiangular(), diagram(), xr.Dataset(), xr.Dataset(attrs={"title": "nur Titel"})])
def test_page_without_tokens_has_no_player(data, tmp_path):
    source = reports.write_report(data, {}, {}, tmp_path).read_text(encoding="utf-8")
    page = Page(source)
    assert "<script" not in source
    assert not page.json
    assert len(page.images) == len(reports.figures(data))
    assert len(source) < 1_000_000


@pytest.mark.parametrize("missing", [False, True])
def test_smallest_and_missing_runs_can_be_reported(missing, tmp_path):
    data = moving_heads(heads=(1,), paths=1, d=5 if missing else 2, times=1, frames=1)
    for name in data.data_vars:
        data[name] = data[name].astype(float) * (np.nan if missing else 1.0)
    page = Page(reports.write_report(data, {}, {}, tmp_path).read_text(encoding="utf-8"))
    assert "heads" not in page.ids  # nothing to choose
    assert "sweep" not in page.ids


def test_writing_again_replaces_the_page(tmp_path):
    data = xr.Dataset(attrs={"title": "first"})
    reports.write_report(data, {}, {}, tmp_path)
    data.attrs["title"] = "second"
    source = reports.write_report(data, {}, {}, tmp_path).read_text(encoding="utf-8")
    assert re.findall("<h1>(.*)</h1>", source) == ["second"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["figures", "index.html"]


def test_settings_become_dotted_names_and_plain_text():
    settings = {"a": {"b": (1, 2.5), "c": {}}, "d": None, "e": np.float32(0.5), "f": True, "g": "x"}
    assert dict(flatten(settings)) == {"a.b": "[1, 2.5]", "a.c": "{}", "d": "", "e": "0.5", "f": "True", "g": "x"}
    assert text(1 / 3) == "0.3333"
    assert allowed({"low": 1.0, "high": 2.0}) == "[1, 2]"
    assert [allowed(claim) for claim in ({"low": 1.0}, {"high": np.inf}, {})] == ["≥ 1", "", ""]


def test_figures_need_their_variables_and_no_empty_ones():
    assert reports.figures(xr.Dataset()) == {}
    assert list(reports.figures(moving_heads()[["energy"]])) == ["energy"]
    assert list(reports.figures(moving_heads()[["energy"]].isel(t=slice(0)))) == []
    assert list(reports.figures(equiangular())) == ["equiangular", "hitting_times"]
    assert list(reports.figures(diagram())) == ["clustering_diagram"]


def test_a_contradicted_claim_is_neither_good_nor_bad():
    from transformer_flows.reports.markup import claims_table

    table = claims_table([{"source": "paper", "statement": "words", "verdict": "contradicted"}])
    assert '<td class="warned">contradicted</td>' in table
