"""The mean field: growth rates of the modes against prediction, and the density over time."""

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..geometry import FourierModes, SphericalHarmonics
from .access import coordinate, values
from .style import SEQUENTIAL, blank, categorical, positive, sequential, styled

PANELS = 4
FINE = 361  # angles at which a density is drawn, from −π to π
HEIGHTS = 121  # of a map, from pole to pole


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

    Needs `density` (t, node) relative to the uniform measure, with the attribute `degree` of its basis, and the nodes
    `node_x` (node, axis). What is drawn between the nodes is the density itself, a sum of functions of the basis.
    """
    t, angle, height = coordinate(data, "t"), np.linspace(-np.pi, np.pi, FINE), np.linspace(-1.0, 1.0, HEIGHTS)
    if data.sizes["axis"] == 2:
        figure = _curves(angle, t, _evaluated(data, np.stack([np.cos(angle), np.sin(angle)], axis=1)))
    else:
        radius = np.sqrt(1 - height[:, None] ** 2)
        grid = [radius * np.cos(angle), radius * np.sin(angle), np.tile(height[:, None], FINE)]
        density = _evaluated(data, np.stack(grid, axis=-1).reshape(-1, 3))
        figure = _maps(angle, height, t, density.reshape(t.size, HEIGHTS, FINE))
    figure.suptitle("Density relative to the uniform measure")
    return figure


def _evaluated(data: xr.Dataset, points: Float[np.ndarray, "point axis"]) -> Float[np.ndarray, "t point"]:
    """Return the density at other points, from the coefficients that give its values at the nodes."""
    nodes, density = values(data, "node_x", "node", "axis"), values(data, "density", "t", "node")
    degree = int(data["density"].attrs["degree"])
    basis = FourierModes(degree) if points.shape[1] == 2 else SphericalHarmonics(degree)
    at_nodes, at_points = (np.asarray(basis(jnp.asarray(x))) for x in (nodes, points))
    evaluated = np.full((len(density), len(points)), np.nan)
    reached = np.isfinite(density).all(axis=1)
    if reached.any():
        evaluated[reached] = (at_points @ np.linalg.lstsq(at_nodes, density[reached].T)[0]).T
    return evaluated


def _curves(
    angle: Float[np.ndarray, "angle"], t: Float[np.ndarray, "t"], density: Float[np.ndarray, "t angle"]
) -> Figure:
    figure, axes = blank(1, 1, panel=(6.0, 3.4), extra=(1.3, 0.3))
    ax = axes[0, 0]
    for time, rho, colour in zip(t, density, sequential(t.size), strict=True):
        ax.plot(angle, rho, color=colour, linewidth=1.5, label=rf"$t={time:.3g}$")
    _longitudes(ax, "angle")
    ax.set_ylabel("density")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _maps(
    longitude: Float[np.ndarray, "angle"],
    height: Float[np.ndarray, "height"],
    t: Float[np.ndarray, "t"],
    density: Float[np.ndarray, "t height angle"],
) -> Figure:
    frames = np.unique(np.linspace(0, t.size - 1, min(PANELS, t.size)).round().astype(int))
    figure, axes = blank(1, frames.size, panel=(2.9, 2.5), extra=(0.9, 0.4), sharex=True, sharey=True)
    low, high = np.nanmin(density[frames], initial=0.0), np.nanmax(density[frames], initial=1.0)
    shade = {"cmap": SEQUENTIAL, "shading": "gouraud", "vmin": low, "vmax": high, "rasterized": True}
    meshes = []
    for ax, frame in zip(axes[0], frames, strict=True):
        ax.grid(False)
        meshes.append(ax.pcolormesh(longitude, height, density[frame], **shade))
        _longitudes(ax, "longitude")
        ax.set_title(rf"$t={t[frame]:.3g}$")
    axes[0, 0].set_ylabel("height $x_3$")
    figure.colorbar(meshes[0], ax=axes[0, :].tolist(), label="density")
    return figure


def _longitudes(ax: Axes, name: str) -> None:
    ax.set_xlim(-np.pi, np.pi)
    ax.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    ax.set_xlabel(name)
