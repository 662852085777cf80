"""Two limits at once: the error of a network against its width, for every number of layers."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from .access import coordinate, values
from .style import blank, mark, positive, sequential, styled


@styled
def plot_limits(data: xr.Dataset) -> Figure:
    """Draw a curve over the width for every number of layers; the last width is infinite.

    Needs `limits` (depth, width), the mean squared error.
    """
    error, depth, width = values(data, "limits", "depth", "width"), coordinate(data, "depth"), coordinate(data, "width")
    places = np.arange(width.size, dtype=float)
    figure, axes = blank(1, 1, panel=(5.6, 3.8), extra=(1.3, 0.3))
    ax = axes[0, 0]
    for row, layers, colour in zip(error, depth, sequential(depth.size), strict=True):
        ax.plot(places, positive(row), color=colour, marker="o", markersize=4, linewidth=1.4, label=f"$L={layers:g}$")
    ax.set_yscale("log")
    mark(ax, places, ["∞" if np.isinf(m) else f"{m:g}" for m in width])
    ax.set_xlabel("width $m$")
    ax.set_ylabel("squared error to the limit")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.suptitle("Depth and width together")
    return figure
