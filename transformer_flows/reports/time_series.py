"""Quantities over depth: every path as a thin line, their mean as a bold one, one colour per number of heads."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .access import DEPTH, cases, coordinate, curves, mean_over_paths, present
from .style import axes_or_blank, blank, categorical, note, positive, styled


def draw_paths(
    ax: Axes,
    t: Float[np.ndarray, "t"],
    paths: Float[np.ndarray, "case path t"],
    labels: Sequence[str],
    colours: Sequence[str],
    *,
    log: bool = False,
    drawstyle: Literal["default", "steps-post"] = "default",
) -> None:
    """Draw each path thin and the mean over the finite paths bold.

    On a log axis values ≤ 0 are left out, from the picture and not from the mean, and counted in a remark.
    """
    shown = positive if log else np.asarray
    dot = "o" if t.size == 1 else ""
    several = paths.shape[1] > 1
    for case, label, colour in zip(paths, labels, colours, strict=True):
        common: dict[str, Any] = {"color": colour, "drawstyle": drawstyle}
        if several:
            ax.plot(t, shown(case).T, linewidth=0.6, alpha=max(0.15, 0.6 / len(case) ** 0.5), **common)
        mean = shown(mean_over_paths(case))
        ax.plot(t, mean, label=label, marker=dot, markersize=4, zorder=3, **common)
    if log:
        ax.set_yscale("log")
    ax.set_xlabel(DEPTH)
    if t.size > 1:
        ax.set_xlim(t[0], t[-1])
    _remarks(ax, paths, log=log)


def _remarks(ax: Axes, paths: Float[np.ndarray, "case path t"], *, log: bool) -> None:
    short = int((~np.isfinite(paths)).any(axis=-1).sum())
    lost = int((paths <= 0).sum()) if log else 0
    remarks = [f"{short} of {paths.shape[0] * paths.shape[1]} paths have missing values"] if short else []
    remarks += [f"{lost} of {paths.size} values ≤ 0 not shown"] if lost else []
    if remarks:
        note(ax, "; ".join(remarks))


def _legend(ax: Axes, paths: int) -> None:
    """Put the legend beside the axes, and say in it what the bold line is."""
    title = f"thin: {paths} paths\nbold: arithmetic mean" if paths > 1 else "one path"
    ax.legend(title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0), alignment="left", title_fontsize=8.5)


@styled
def plot_slope(data: xr.Dataset) -> Figure:
    """Draw G² and the dissipation S over depth on a common log axis, whichever of the two are there.

    Needs `slope` or `dissipation_rate` (heads, path, t). The two agree for one head only: G² is the squared metric
    derivative of the head-averaged flow, S the rate at which it lowers the energy, which need not be positive.
    """
    titles = {"slope": "$G^2$, squared metric derivative", "dissipation_rate": "$S$, dissipation of energy"}
    symbols = {"slope": "$G^2(t)$", "dissipation_rate": "$S(t)$"}
    names = present(data, titles)
    figure, axes = blank(1, len(names), panel=(4.3, 3.7), extra=(1.5, 0.3), sharey=True)
    labels, t = cases(data, "heads", "$H$"), coordinate(data, "t")
    for ax, name in zip(axes[0], names, strict=True):
        draw_paths(ax, t, curves(data, name), labels, categorical(len(labels)), log=True)
        ax.set_title(titles[name])
        ax.set_ylabel(symbols[name])
        ax.tick_params(labelleft=True)
    _legend(axes[0, -1], data.sizes["path"])
    figure.suptitle("Squared slope and dissipation")
    return figure


@styled
def plot_energy(data: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Draw the interaction energy over depth. Needs `energy` (heads, path, t)."""
    figure, ax = axes_or_blank(ax, (6.6, 3.8))
    labels = cases(data, "heads", "$H$")
    draw_paths(ax, coordinate(data, "t"), curves(data, "energy"), labels, categorical(len(labels)))
    ax.set_title("Interaction energy")
    ax.set_ylabel(r"$E(\mu_t;\Theta_t)$")
    _legend(ax, data.sizes["path"])
    return figure


@styled
def plot_clusters(data: xr.Dataset) -> Figure:
    """Draw the number of clusters, the order parameter and the diameter over depth, whichever are there.

    Needs one of `clusters`, `order_parameter`, `diameter` (heads, path, t).
    """
    names = {
        "clusters": ("Clusters", "number of clusters"),
        "order_parameter": ("Order parameter", "length of the mean token"),
        "diameter": ("Diameter", "largest geodesic distance, radians"),
    }
    shown = present(data, names)
    figure, axes = blank(1, len(shown), panel=(3.6, 3.4), extra=(1.5, 0.3))
    labels, t = cases(data, "heads", "$H$"), coordinate(data, "t")
    for ax, name in zip(axes[0], shown, strict=True):
        paths = curves(data, name)
        style = "steps-post" if name == "clusters" else "default"
        draw_paths(ax, t, paths, labels, categorical(len(labels)), drawstyle=style)
        ax.set_title(names[name][0])
        ax.set_ylabel(names[name][1])
        if name == "clusters":
            ax.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        highest = paths[np.isfinite(paths)].max(initial=0.0)
        ax.set_ylim(0.0, 1.06 * highest if highest else 1.0)
    _legend(axes[0, -1], data.sizes["path"])
    figure.suptitle("Clustering")
    return figure
