"""Energies along proximal steps of any length."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import coordinate, values
from .style import axes_or_blank, categorical, styled


@styled
def plot_movements(data: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Draw the energy after every proximal step, a line per tau. Needs `step_energy` (tau, step)."""
    figure, ax = axes_or_blank(ax, (6.0, 3.9))
    taus, energies = coordinate(data, "tau"), values(data, "step_energy", "tau", "step")
    for tau, energy, colour in zip(taus, energies, categorical(len(taus)), strict=True):
        ax.plot(coordinate(data, "step"), energy, color=colour, marker="o", markersize=3, label=f"$\\tau={tau:g}$")
    ax.set_xlabel("step $k$")
    ax.set_ylabel(r"$E(x^k)$")
    rise = np.diff(energies).max(initial=0.0)
    ax.set_title(f"Energy along proximal steps, fixed heads: largest rise {rise:.1g}")
    ax.legend()
    return figure
