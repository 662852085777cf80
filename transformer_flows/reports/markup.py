"""Tables of the page as HTML; all text is escaped here."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from .cells import Block, number
from .table import Summary

GOOD = {"true", "pass", "passed", "holds", "confirmed", "agrees", "ok"}
WARNED = {"contradicted"}
BAD = {"false", "fail", "failed", "fails", "refuted", "disagrees"}


def summary_table(summary: Summary) -> str:
    """Return the summary, a table per block; a remark where the run has none."""
    if not summary.blocks:
        return '<p class="notes">This run has no quantities to summarise.</p>'
    notes = "".join(f'<p class="notes">{escape(note)}</p>' for note in summary.notes)
    return "\n".join(map(_block, summary.blocks)) + notes


def _block(block: Block) -> str:
    columns, rows = block
    head = "<th></th>" + "".join(f'<th class="number">{escape(column)}</th>' for column in columns)
    return _table(
        head, [_row(label, [f'<td class="number">{escape(cell)}</td>' for cell in cells]) for label, cells in rows]
    )


def claims_table(claims: Sequence[Mapping[str, Any]]) -> str:
    """Return the claims: what was said, what was predicted, what was measured, and the verdict."""
    names = ("source", "statement", "predicted", "measured", "allowed", "verdict")
    head = "".join(f"<th>{name}</th>" for name in names)
    return _table(head, [_claim(claim) for claim in claims])


def _claim(claim: Mapping[str, Any]) -> str:
    verdict = text(claim.get("verdict"))
    kinds = {"good": GOOD, "bad": BAD, "warned": WARNED}
    kind = next((kind for kind, words in kinds.items() if verdict.lower() in words), "")
    cells = [text(claim.get("statement")), text(claim.get("predicted")), _measured(claim), allowed(claim)]
    row = [f"<td>{escape(cell)}</td>" for cell in cells] + [f'<td class="{kind}">{escape(verdict)}</td>']
    return _row(text(claim.get("source")), row)


def _measured(claim: Mapping[str, Any]) -> str:
    """Return the measured value with its error; what went wrong, where a check ended with an exception."""
    if claim.get("fault"):
        return text(claim["fault"])
    error = claim.get("error")
    return text(claim.get("measured")) + (f" ± {text(error)}" if error else "")


def allowed(claim: Mapping[str, Any]) -> str:
    """Return where the measured value must lie; an end that is missing or infinite leaves an inequality."""
    low, high = (text(claim.get(end)).strip("–−∞") for end in ("low", "high"))
    if low and high:
        return f"[{low}, {high}]"
    return f"≥ {low}" if low else f"≤ {high}" if high else ""


def settings_table(settings: Mapping[str, Any]) -> str:
    """Return nested settings as one row per value, with dotted names as in the configuration file."""
    rows = [_row(name, [f"<td>{escape(value)}</td>"]) for name, value in flatten(settings)]
    return _table("", rows) if rows else '<p class="notes">None.</p>'


def flatten(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted name and text of every value that is not itself a non-empty mapping."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", text(value, exact=True)


def text(value: Any, *, exact: bool = False) -> str:
    """Return a value without quotes, arrays as lists, None as nothing; floats are shortened unless `exact`."""
    if value is None:
        return ""
    if isinstance(value, np.ndarray) or (hasattr(value, "tolist") and not isinstance(value, str)):
        return text(value.tolist(), exact=exact)
    if isinstance(value, float):
        return repr(value) if exact else number(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "[" + ", ".join(text(item, exact=exact) for item in value) + "]"
    return str(value)


def _row(label: str, cells: Sequence[str]) -> str:
    return f'<tr><th scope="row">{escape(label)}</th>{"".join(cells)}</tr>\n'


def _table(head: str, rows: Sequence[str]) -> str:
    header = f"<thead><tr>{head}</tr></thead>\n" if head else ""
    return f'<div class="wide"><table>{header}<tbody>\n{"".join(rows)}</tbody></table></div>'
