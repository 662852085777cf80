"""The summary of a run in numbers: a column per case, a row per quantity."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float
from rich.table import Table
from rich.text import Text

from .access import cases, coordinate, curves, values
from .cells import Block, number, with_spread
from .table_flows import distances, long_time, movements, scaling, stability, two_flows


@dataclass(frozen=True)
class Summary:
    """Rows of text: a quantity and its value in each column; `notes` are facts about the run as a whole."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...]


def summarise(data: xr.Dataset) -> Summary:
    """Return the summary as text for any kind of output; what has other cases has columns of its own."""
    makers = (_moving_heads, _equiangular, _diagram, two_flows, scaling, movements, distances, stability, long_time)
    blocks = [block for block in (make(data) for make in makers) if block[1]]
    columns = tuple(column for names, _ in blocks for column in names)
    rows, before = [], 0
    for names, block in blocks:
        after = len(columns) - before - len(names)
        rows += [(label, ("",) * before + cells + ("",) * after) for label, cells in block]
        before += len(names)
    return Summary(columns, tuple(rows), tuple(_notes(data)))


def summary(data: xr.Dataset) -> Table:
    """Return the summary as a rich table: `rich.print(summary(data))`."""
    content = summarise(data)
    # Text, not str: square brackets in a title or an interval are not markup
    table = Table(title=Text(str(data.attrs.get("title", ""))), caption=Text("\n".join(content.notes)))
    table.add_column("quantity")
    for column in content.columns:
        table.add_column(Text(column), justify="right")
    for label, cells in content.rows:
        table.add_row(label, *cells)
    return table


def _moving_heads(data: xr.Dataset) -> Block:
    if "heads" not in data.dims:
        return [], []
    rows: list[tuple[str, tuple[str, ...]]] = []
    if "path" in data.dims:
        rows.append(("paths", (str(data.sizes["path"]),) * data.sizes["heads"]))
    if "mean_slope" in data:
        label = str(data["mean_slope"].attrs.get("long_name", "mean of G² after settling"))
        rows.append((label, _spreads(values(data, "mean_slope", "heads", "path"))))
    for name, label in _AT_END.items():
        if name in data and data.sizes["t"]:
            rows.append((label.format(t=number(coordinate(data, "t")[-1])), _spreads(curves(data, name)[..., -1])))
    for label, residual in _residuals(data):
        rows.append((label, _largest(np.abs(residual))))
    return cases(data, "heads", "H"), rows


_AT_END = {
    "slope": "G² at t = {t}",
    "dissipation_rate": "S at t = {t}",
    "energy": "energy at t = {t}",
    "balance_energy_change": "energy change",
    "clusters": "clusters at t = {t}",
    "order_parameter": "order parameter at t = {t}",
    "diameter": "diameter at t = {t}",
}


def _spreads(samples: Float[np.ndarray, "heads path"]) -> tuple[str, ...]:
    return tuple(with_spread(sample) for sample in samples)


def _residuals(data: xr.Dataset) -> Iterator[tuple[str, Float[np.ndarray, "heads path t"]]]:
    if "balance_residual" in data:
        plain = curves(data, "balance_residual")
        yield "largest |residual| of the balance", plain
        if "balance_remainder" in data and curves(data, "balance_remainder").any():
            yield "the same with the realised noise term", plain - curves(data, "balance_remainder")


def _equiangular(data: xr.Dataset) -> Block:
    rows = []
    if {"cosine", "cosine_predicted"} <= set(data.data_vars):
        gap = np.abs(values(data, "cosine", *_LBT) - values(data, "cosine_predicted", *_LBT))
        rows.append(("largest |cosine − predicted|", _largest(gap)))
    if {"hitting_time", "hitting_time_predicted"} <= set(data.data_vars):
        predicted = values(data, "hitting_time_predicted", "law", "beta")
        gap = np.abs(values(data, "hitting_time", "law", "beta") - predicted)
        with np.errstate(divide="ignore", invalid="ignore"):
            rows.append(("largest relative error of the hitting time", _largest(gap / np.abs(predicted))))
    return ([str(law) for law in data["law"].to_numpy()], rows) if rows else ([], [])


_LBT = ("law", "beta", "t")


def _largest(gap: Float[np.ndarray, "law *rest"]) -> tuple[str, ...]:
    finite = np.where(np.isfinite(gap), gap, -np.inf).reshape(len(gap), -1)
    return tuple(number(float(value), 3) for value in finite.max(axis=1, initial=-np.inf))


def _diagram(data: xr.Dataset) -> Block:
    if "clustered" not in data or not data["clustered"].size:
        return [], []
    clustered = values(data, "clustered", "d", "beta", "t")
    share = [f"{100 * np.mean(cells >= 0.5):.0f} %" for cells in clustered]
    return cases(data, "d", "d"), [("part of the (t, β) window with probability ≥ ½", tuple(share))]


def _notes(data: xr.Dataset) -> Iterator[str]:
    if data.sizes.get("path", 1) > 1:
        yield "± is the standard deviation over the paths"
    if np.isfinite(data.attrs.get("power_exponent", np.nan)):
        a, b = float(data.attrs["power_prefactor"]), float(data.attrs["power_exponent"])
        low, high = (float(data.attrs.get(f"power_exponent_{end}", np.nan)) for end in ("low", "high"))
        yield f"mean G² ≈ {number(a, 3)} · H^b with b = {b:.3f}, interval [{low:.3f}, {high:.3f}]"
