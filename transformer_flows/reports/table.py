"""The summary of a run in numbers: tables one below the other, each with a column per case and a row per quantity."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float
from rich.console import Group
from rich.table import Table
from rich.text import Text

from .access import cases, coordinate, curves, values
from .cells import Block, number, with_spread
from .table_flows import distances, growth_rates, long_time, mean_field, movements, scaling, stability, two_flows
from .table_layers import large_steps, long_layers, noise_rates, synchronisation


@dataclass(frozen=True)
class Summary:
    """Blocks of text, each with cases of its own; `notes` are facts about the run as a whole."""

    blocks: tuple[Block, ...]
    notes: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The cases of all blocks, in order."""
        return tuple(column for columns, _ in self.blocks for column in columns)

    @property
    def rows(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The quantities of all blocks, in order: a label and the values in the columns of its block."""
        return tuple(row for _, rows in self.blocks for row in rows)


def summarise(data: xr.Dataset) -> Summary:
    """Return the summary as text for any kind of output; what has other cases has a block of its own."""
    flows = (two_flows, scaling, movements, distances, stability, long_time, growth_rates, mean_field)
    makers = (_moving_heads, _equiangular, _diagram, *flows, synchronisation, long_layers, noise_rates)
    blocks = (make(data) for make in makers)
    return Summary(tuple(block for block in blocks if block[1]), tuple(_notes(data)))


def summary(data: xr.Dataset) -> Group:
    """Return the summary as rich tables, one below the other: `rich.print(summary(data))`."""
    content = summarise(data)
    tables = [_table(block) for block in content.blocks or [([], [])]]
    # Text, not str: square brackets in a title or an interval are not markup
    tables[0].title = Text(str(data.attrs.get("title", "")))
    tables[-1].caption = Text("\n".join(content.notes))
    return Group(*tables)


def _table(block: Block) -> Table:
    columns, rows = block
    table = Table("quantity")
    for column in columns:
        table.add_column(Text(column), justify="right")
    for label, cells in rows:
        table.add_row(Text(label), *map(Text, cells))
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
        cells = zip(_largest(np.abs(residual)), residual, strict=True)
        rows.append((label, tuple(cell + _finite_part(part) for cell, part in cells)))
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


def _finite_part(values: Float[np.ndarray, "path t"]) -> str:
    """Return a remark where a largest value is not that of the whole run."""
    finite = np.isfinite(values)
    return " (of the finite values)" if finite.any() and not finite.all() else ""


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
    largest = finite.max(axis=1, initial=-np.inf)
    return tuple(number(float(value), 3) if np.isfinite(value) else number(np.nan) for value in largest)


def _diagram(data: xr.Dataset) -> Block:
    if "clustered" not in data or not data["clustered"].size:
        return [], []
    clustered = values(data, "clustered", "d", "beta", "t")
    share = [f"{100 * np.mean(cells >= 0.5):.0f} %" for cells in clustered]
    return cases(data, "d", "d"), [("part of the (t, β) window with probability ≥ ½", tuple(share))]


def _notes(data: xr.Dataset) -> Iterator[str]:
    yield from large_steps(data)
    if data.sizes.get("path", 1) > 1:
        yield "± is the standard deviation over the paths"
    if np.isfinite(data.attrs.get("power_exponent", np.nan)):
        a, b = float(data.attrs["power_prefactor"]), float(data.attrs["power_exponent"])
        low, high = (float(data.attrs.get(f"power_exponent_{end}", np.nan)) for end in ("low", "high"))
        yield f"mean G² ≈ {number(a, 3)} · H^b with b = {b:.3f}, interval [{low:.3f}, {high:.3f}]"
