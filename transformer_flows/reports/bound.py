"""How two clouds part under the same weights, against the estimate that they may not pass."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import DEPTH, coordinate, values
from .style import blank, note, positive, sequential, styled

BOUND: dict[str, Any] = {"color": "#D55E00", "linestyle": "--", "linewidth": 1.4, "label": "bound"}
MARGIN = 2.0  # of the axis above the largest growth: the estimate soon leaves the figure


@styled
def plot_bound(data: xr.Dataset) -> Figure:
    """Draw the growth of W₂ over depth with its bound above, and the exponents of both below; a column per case.

    A bound that leaves the axis before the first recorded time is written, not drawn. Needs `growth` (case,
    perturbation, t) and `growth_bound` (case, t); the lower row needs `growth_rate` and `growth_rate_bound`.
    """
    names = [str(name) for name in data["case"].to_numpy()]
    exponents = {"growth_rate", "growth_rate_bound"} <= set(data.data_vars)
    figure, axes = blank(1 + exponents, len(names), panel=(2.9, 2.6), extra=(1.6, 0.4), sharex=True, sharey="row")
    rows = [("growth", "growth_bound")] + [("growth_rate", "growth_rate_bound")] * exponents
    lowest, highest = _range(data)
    for ax_row, (name, bound) in zip(axes, rows, strict=True):
        measured = values(data, name, "case", "perturbation", "t")
        allowed = values(data, bound, "case", "t")
        for ax, curves, limit in zip(ax_row, measured, allowed, strict=True):
            _draw(ax, data, curves)
            if name != "growth" or (limit[1:] <= highest).any():
                ax.plot(coordinate(data, "t"), positive(limit), **BOUND)
    for i, (ax, name) in enumerate(zip(axes[0], names, strict=True)):
        ax.set_ylim(lowest, highest)
        if not any(line.get_label() == "bound" for line in ax.lines):
            note(ax, _beyond(data, i))
        ax.set_title(name.replace(", ", "\n", 1), fontsize=9)
    for ax in axes[-1]:
        ax.set_xlabel(DEPTH)
    axes[0, 0].set_ylabel("$W_2(t)/W_2(0)$")
    if exponents:
        axes[1, 0].set_ylabel("exponent")
        for ax, curves in zip(axes[1], values(data, "growth_rate", "case", "perturbation", "t"), strict=True):
            lost = int((curves <= 0).sum())
            if lost:
                note(ax, f"{lost} of {curves.size} exponents ≤ 0 not shown")
    lines = axes[-1, -1].get_legend_handles_labels()
    axes[0, -1].legend(*lines, title="perturbation", loc="upper left", bbox_to_anchor=(1.0, 1.0), alignment="left")
    figure.suptitle("Stability: growth of the distance of two clouds, and Grönwall's bound")
    return figure


def _range(data: xr.Dataset) -> tuple[float, float]:
    """Return the ends of the axis of the growth, which hold all measured values."""
    growth = positive(values(data, "growth", "case", "perturbation", "t"))
    shown = growth[np.isfinite(growth)]
    return 0.7 * float(shown.min(initial=1.0)), MARGIN * float(shown.max(initial=1.0))


def _beyond(data: xr.Dataset, i: int) -> str:
    """Return how large the bound of a case is at the end, where its line would leave the axis at once."""
    t = coordinate(data, "t")[-1]
    with np.errstate(divide="ignore"):
        power = np.log10(values(data, "growth_bound", "case", "t")[i, -1])
    if "growth_rate_bound" in data:  # finite also where the bound itself is beyond the largest float
        power = values(data, "growth_rate_bound", "case", "t")[i, -1] * t / np.log(10)
    size = f"$10^{{{np.round(power):.6g}}}$" if np.isfinite(power) else "not finite"
    return f"bound off the scale: {size} at $t$ = {t:.3g}"


def _draw(ax: Axes, data: xr.Dataset, curves: np.ndarray) -> None:
    t, sizes = coordinate(data, "t"), coordinate(data, "perturbation")
    for curve, size, colour in zip(curves, sizes, sequential(len(sizes)), strict=True):
        ax.plot(t, positive(curve), color=colour, linewidth=1.4, label=f"{size:g}")
    ax.set_yscale("log")
    if t.size > 1:
        ax.set_xlim(t[0], t[-1])
