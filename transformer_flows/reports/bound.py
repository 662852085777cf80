"""How two clouds part under the same weights, against the estimate that they may not pass."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import DEPTH, coordinate, values
from .style import blank, note, positive, sequential, styled

MARGIN = 2.0  # of the axis above the largest growth: the estimate soon leaves the figure


@styled
def plot_bound(data: xr.Dataset) -> Figure:
    """Draw the growth of W_2 over depth with its bound above, and the exponents of both below; a column per case.

    Needs `growth` (case, perturbation, t) and `growth_bound` (case, t); the lower row needs `growth_rate` and
    `growth_rate_bound`.
    """
    names = [str(name) for name in data["case"].to_numpy()]
    exponents = {"growth_rate", "growth_rate_bound"} <= set(data.data_vars)
    figure, axes = blank(1 + exponents, len(names), panel=(2.9, 2.6), extra=(1.6, 0.4), sharex=True, sharey="row")
    rows = [("growth", "growth_bound")] + [("growth_rate", "growth_rate_bound")] * exponents
    for ax_row, (name, bound) in zip(axes, rows, strict=True):
        measured = values(data, name, "case", "perturbation", "t")
        allowed = values(data, bound, "case", "t")
        for ax, curves, limit in zip(ax_row, measured, allowed, strict=True):
            _draw(ax, data, curves, limit)
    growth = positive(values(data, "growth", "case", "perturbation", "t"))
    for ax, name in zip(axes[0], names, strict=True):
        ax.set_ylim(0.7 * np.nanmin(growth), MARGIN * np.nanmax(growth))
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
    axes[0, -1].legend(title="perturbation", loc="upper left", bbox_to_anchor=(1.0, 1.0), alignment="left")
    figure.suptitle("Stability: growth of the distance of two clouds, and Grönwall's bound")
    return figure


def _draw(ax: Axes, data: xr.Dataset, curves: np.ndarray, limit: np.ndarray) -> None:
    t, sizes = coordinate(data, "t"), coordinate(data, "perturbation")
    for curve, size, colour in zip(curves, sizes, sequential(len(sizes)), strict=True):
        ax.plot(t, positive(curve), color=colour, linewidth=1.4, label=f"{size:g}")
    finite = np.where(np.isfinite(limit), limit, np.nan)
    ax.plot(t, finite, color="#D55E00", linestyle="--", linewidth=1.4, label="bound")
    ax.set_yscale("log")
    if t.size > 1:
        ax.set_xlim(t[0], t[-1])
