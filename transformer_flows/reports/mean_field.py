"""The mean field: growth rates of the modes against prediction, and the density over time."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import TriMesh
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation

from .access import coordinate, values
from .style import SEQUENTIAL, blank, categorical, positive, sequential, styled

PANELS = 4


@styled
def plot_growth_rates(data: xr.Dataset) -> Figure:
    """Draw the measured growth rates as dots over the predicted ones as lines, and below their relative distance.

    Needs `rate` and `rate_predicted` (case, mode). A rate that is not positive does not show on the log axis.
    """
    mode, names = coordinate(data, "mode"), [str(name) for name in data["case"].to_numpy()]
    measured, predicted = values(data, "rate", "case", "mode"), values(data, "rate_predicted", "case", "mode")
    figure, axes = blank(2, 1, panel=(6.0, 2.6), extra=(1.9, 0.3), sharex=True, height_ratios=(1.6, 1.0))
    upper, lower = axes[:, 0]
    dash = "_" if mode.size == 1 else ""  # a line through one point is invisible
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(measured / predicted - 1)
    for i, colour in enumerate(categorical(len(names))):
        upper.plot(mode, positive(predicted[i]), color=colour, linewidth=1.3, marker=dash, markersize=16)
        upper.plot(
            mode, positive(measured[i]), color=colour, linestyle="none", marker="o", markersize=5, label=names[i]
        )
        lower.plot(mode, positive(apart[i]), color=colour, linewidth=1.0, marker="o", markersize=3)
    for ax in (upper, lower):
        ax.set_yscale("log")
        ax.set_xticks(mode)
    upper.set_ylabel("growth rate")
    lower.set_ylabel("relative error")
    lower.set_xlabel(data["mode"].attrs.get("long_name", "mode"))
    upper.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.suptitle("Growth from the uniform density: measured (dots), predicted (lines)")
    return figure


@styled
def plot_density(data: xr.Dataset) -> Figure:
    """Draw a density over time: on S¹ curves over the angle, on S² maps that keep areas, longitude against height.

    Needs `density` (t, node) relative to the uniform measure, and the nodes `node_x` (node, axis).
    """
    x, t = values(data, "node_x", "node", "axis"), coordinate(data, "t")
    density = values(data, "density", "t", "node")
    longitude = np.arctan2(x[:, 1], x[:, 0])
    figure = _curves(longitude, t, density) if x.shape[1] == 2 else _maps(longitude, x[:, 2], t, density)
    figure.suptitle("Density relative to the uniform measure")
    return figure


def _curves(
    angle: Float[np.ndarray, "node"], t: Float[np.ndarray, "t"], density: Float[np.ndarray, "t node"]
) -> Figure:
    figure, axes = blank(1, 1, panel=(6.0, 3.4), extra=(1.3, 0.3))
    ax, order = axes[0, 0], np.argsort(angle)
    for time, rho, colour in zip(t, density, sequential(t.size), strict=True):
        ax.plot(angle[order], rho[order], color=colour, linewidth=1.5, label=rf"$t={time:.3g}$")
    _longitudes(ax, "angle")
    ax.set_ylabel("density")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _maps(
    longitude: Float[np.ndarray, "node"],
    height: Float[np.ndarray, "node"],
    t: Float[np.ndarray, "t"],
    density: Float[np.ndarray, "t node"],
) -> Figure:
    frames = np.unique(np.linspace(0, t.size - 1, min(PANELS, t.size)).round().astype(int))
    figure, axes = blank(1, frames.size, panel=(2.9, 2.5), extra=(0.9, 0.4), sharex=True, sharey=True)
    low, high = np.nanmin(density[frames], initial=0.0), np.nanmax(density[frames], initial=1.0)
    # the map ends at ±π: nodes on either side of the cut are drawn on both
    around = np.concatenate([longitude + turn for turn in (-2 * np.pi, 0.0, 2 * np.pi)])
    cells = Triangulation(around, np.tile(height, 3))
    meshes: list[TriMesh] = []
    for ax, frame in zip(axes[0], frames, strict=True):
        ax.grid(False)
        shade = {"cmap": SEQUENTIAL, "shading": "gouraud", "vmin": low, "vmax": high, "rasterized": True}
        meshes.append(ax.tripcolor(cells, np.tile(density[frame], 3), **shade))
        _longitudes(ax, "longitude")
        ax.set_title(rf"$t={t[frame]:.3g}$")
    axes[0, 0].set_ylabel("height $x_3$")
    figure.colorbar(meshes[0], ax=axes[0, :].tolist(), label="density")
    return figure


def _longitudes(ax: Axes, name: str) -> None:
    ax.set_xlim(-np.pi, np.pi)
    ax.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    ax.set_xlabel(name)
