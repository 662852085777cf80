"""The clustering diagram: over (t, β), the probability that two tokens have met, with the predicted curve."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from .access import DEPTH, cases, coordinate, values
from .style import SEQUENTIAL, blank, styled

CURVE = "#ff5a36"  # stands out on dark and on light cells, also without colour vision: it is drawn with a white rim


@styled
def plot_diagram(data: xr.Dataset) -> Figure:
    """Draw one heat map per dimension.

    Needs `clustered` (d, beta, t); the curve needs `clustering_time_predicted` (d, beta).
    """
    t, beta, titles = coordinate(data, "t"), coordinate(data, "beta"), cases(data, "d", "$d$")
    clustered = values(data, "clustered", "d", "beta", "t")
    figure, axes = blank(1, len(titles), panel=(3.4, 3.5), extra=(0.9, 0.3), sharex=True, sharey=True)
    level = float(data["clustered"].attrs.get("level", 0.999))
    predicted = None
    if "clustering_time_predicted" in data:
        predicted = values(data, "clustering_time_predicted", "d", "beta")
    meshes = [_draw_cells(ax, t, beta, cells) for ax, cells in zip(axes[0], clustered, strict=True)]
    for i, ax in enumerate(axes[0]):
        if predicted is not None:
            _draw_curve(ax, predicted[i], beta)
        ax.set_title(titles[i])
        ax.set_xlabel(DEPTH)
    axes[0, 0].set_ylabel(r"inverse temperature $\beta$")
    figure.colorbar(meshes[0], ax=axes[0, :].tolist(), label=rf"probability of $\langle x_i,x_j\rangle\geq {level:g}$")
    figure.suptitle("Probability that two tokens have met")
    return figure


def _draw_cells(
    ax: Axes, t: Float[np.ndarray, "t"], beta: Float[np.ndarray, "beta"], cells: Float[np.ndarray, "beta t"]
) -> QuadMesh:
    ax.grid(False)
    return ax.pcolormesh(edges(t), edges(beta), cells, vmin=0.0, vmax=1.0, cmap=SEQUENTIAL, rasterized=True)


def _draw_curve(ax: Axes, time: Float[np.ndarray, "beta"], beta: Float[np.ndarray, "beta"]) -> None:
    limits = ax.get_xlim(), ax.get_ylim()
    dot = "o" if beta.size == 1 else ""
    ax.plot(time, beta, color="white", linewidth=3.4, marker=dot, markersize=8)
    ax.plot(time, beta, color=CURVE, linewidth=1.7, label="predicted", marker=dot, markersize=5)
    ax.set(xlim=limits[0], ylim=limits[1])  # the curve may leave the window of the run
    ax.legend(loc="upper right", frameon=True, framealpha=0.9, edgecolor="none")


def edges(centres: Float[np.ndarray, "k"]) -> Float[np.ndarray, "k+1"]:
    """Return cell boundaries: midpoints inside, outer cells symmetric; one centre gets a cell of width one."""
    if centres.size == 1:
        return centres + np.array([-0.5, 0.5])
    inner = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - inner[0]], inner, [2 * centres[-1] - inner[-1]]])
