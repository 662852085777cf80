"""Errors against a level on doubly logarithmic axes, with the fitted powers: how fast something converges."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import mean_over_paths, scaling_level_names, scaling_levels, scaling_powers, values
from .style import blank, categorical, mark, positive, styled, typeset

COLUMNS = 3
WIDEST = 100.0  # ratio of the levels up to which each is written


@styled
def plot_scaling(data: xr.Dataset) -> Figure:
    """Draw the error of every draw, their mean and the fitted line; a panel per kind of level, a colour per series.

    Needs `scaling_error` (series, level, draw) and the levels: the coordinate `level`, or `scaling_level`
    (series, level) where the series have levels of their own. The lines need `scaling_power` and
    `scaling_prefactor` (series), the interval `scaling_power_low` and `…_high`, and the power that theory gives
    `scaling_power_expected`. A series is named "quantity: how it was varied"; those varied alike share a panel.
    """
    names = [str(name) for name in data["series"].to_numpy()]
    levels, panels = scaling_level_names(data), dict[str, list[int]]()
    for i, name in enumerate(names):
        panels.setdefault(name.partition(": ")[2], []).append(i)
    rows = -(-len(panels) // COLUMNS)
    figure, axes = blank(rows, min(len(panels), COLUMNS), panel=(4.2, 4.6), extra=(0.2, 0.3))
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    for ax, (title, members) in zip(axes.flat, panels.items(), strict=False):
        for colour, i in zip(categorical(len(members)), members, strict=True):
            _draw_series(ax, data, i, names[i].partition(": ")[0], colour)
        ax.set_xscale("log")
        ax.set_yscale("log")
        _label_levels(ax, scaling_levels(data)[members])
        ax.set_title(typeset(title))
        ax.set_xlabel(typeset(" or ".join(dict.fromkeys(levels[i] for i in members))))
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), alignment="left")
    for ax in axes[:, 0]:
        ax.set_ylabel(data["scaling_error"].attrs.get("long_name", "error"))
    figure.suptitle("Convergence: error against level")
    return figure


def _label_levels(ax: Axes, levels: np.ndarray) -> None:
    """Write each level where all of them have room; the powers of ten do for many decades."""
    if levels.max() > WIDEST * levels.min():
        return
    marks = np.unique(levels)
    mark(ax, marks, [f"{level:.3g}" for level in marks])


def _draw_series(ax: Axes, data: xr.Dataset, i: int, name: str, colour: str) -> None:
    levels = positive(scaling_levels(data)[i])
    errors = values(data, "scaling_error", "series", "level", "draw")[i]
    drawn = errors[:, np.isfinite(errors).any(axis=0)]
    if drawn.shape[1] > 1:
        where = np.broadcast_to(levels[:, None], drawn.shape).ravel()
        ax.plot(where, positive(drawn).ravel(), linestyle="none", marker="o", markersize=3, color=colour, alpha=0.3)
    mean = positive(mean_over_paths(errors[..., None])[:, 0])
    power, low, high, prefactor, expected = (numbers[i] for numbers in scaling_powers(data))
    label = typeset(name)
    if np.isfinite(power):
        interval = f" [{low:.2f}, {high:.2f}]" if np.isfinite([low, high]).all() else ""
        theory = f", expected {expected:g}" if np.isfinite(expected) else ""
        label = f"{label}\npower {power:.2f}{interval}{theory}"
        with np.errstate(over="ignore"):
            ax.plot(levels, positive(prefactor * levels**power), color=colour, linewidth=1.4, zorder=1)
    ax.plot(levels, mean, linestyle="none", marker="D", markersize=5, color=colour, label=label)
