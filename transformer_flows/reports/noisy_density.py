"""A density under common noise and the tokens on the same path of the noise: both over time and angle."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from .access import DEPTH, coordinate, values
from .diagram import edges
from .style import SEQUENTIAL, blank, styled


@styled
def plot_noisy_density(data: xr.Dataset) -> Figure:
    """Draw two heat maps over time and angle in one scale: the density, and the histogram of tokens.

    Needs `noisy_density` (t, angle) and `noisy_tokens` (t, bin), both relative to the uniform measure; the attribute
    `n` of the latter is the number of tokens.
    """
    density, tokens = values(data, "noisy_density", "angle", "t"), values(data, "noisy_tokens", "bin", "t")
    number = data["noisy_tokens"].attrs.get("n")
    titles = ("density", "tokens" if number is None else f"{int(number)} tokens")
    figure, axes = blank(1, 2, panel=(3.9, 3.6), extra=(0.9, 0.4), sharex=True, sharey=True)
    # a histogram overshoots by chance: the density sets the scale
    high = float(np.nanmax(density, initial=1.0))
    meshes = [
        _draw(ax, coordinate(data, "t"), coordinate(data, name), cells, high)
        for ax, name, cells in zip(axes[0], ("angle", "bin"), (density, tokens), strict=True)
    ]
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title)
        ax.set_xlabel(DEPTH)
    axes[0, 0].set_ylabel("angle")
    axes[0, 0].set_yticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    extend = "max" if np.nanmax(tokens, initial=0.0) > high else "neither"
    figure.colorbar(meshes[0], ax=axes[0, :].tolist(), label="relative to the uniform measure", extend=extend)
    figure.suptitle("One path of the common noise")
    return figure


def _draw(ax: Axes, t: np.ndarray, angle: np.ndarray, cells: np.ndarray, high: float) -> QuadMesh:
    ax.grid(False)
    return ax.pcolormesh(edges(t), edges(angle), cells, vmin=0.0, vmax=high, cmap=SEQUENTIAL, rasterized=True)
