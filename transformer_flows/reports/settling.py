"""Whether tokens come to rest, beside whether their weights do."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import DEPTH, coordinate, settling, values
from .style import CATEGORICAL, MUTED, blank, note, positive, styled


@styled
def plot_settling(data: xr.Dataset) -> Figure:
    """Draw G² and the energy's squared slope over depth with the tolerance and the settling time; a panel per case.

    Needs `settling_slope` and `settling_time`; `settling_energy_slope`, `weights_integrable`, `limit_slope` and the
    attribute `tolerance` are shown where they are there.
    """
    names = [str(name) for name in data["case"].to_numpy()]
    figure, axes = blank(1, len(names), panel=(3.9, 3.6), extra=(0.2, 0.4), sharey=True)
    for i, (ax, name) in enumerate(zip(axes[0], names, strict=True)):
        _draw(ax, data, i)
        ax.set_title(name + _about_weights(data, i), fontsize=9.5)
        ax.set_xlabel(DEPTH)
        ax.tick_params(labelleft=True)
    axes[0, 0].legend(loc="upper right")
    figure.suptitle("Long time: does the motion end?")
    return figure


def _draw(ax: Axes, data: xr.Dataset, i: int) -> None:
    t = coordinate(data, "t")
    # the second dashed and narrow on the first: under one head, and under equal ones, the two agree
    curves = {"settling_slope": ("$G^2$", "-", 2.6), "settling_energy_slope": ("slope²", (0, (4, 2)), 1.4)}
    for (name, (label, dash, width)), colour in zip(curves.items(), CATEGORICAL, strict=False):
        if name in data:
            curve = positive(values(data, name, "case", "t")[i])
            ax.plot(t, curve, color=colour, linestyle=dash, linewidth=width, label=label)
    tolerance = float(data.attrs.get("tolerance", np.nan))
    if np.isfinite(positive(np.array(tolerance))):
        ax.axhline(tolerance, color=MUTED, linestyle=":", linewidth=1.2, label="tolerance")
    settled = values(data, "settling_time", "case")[i]
    if np.isfinite(settled):
        ax.axvline(settled, color=CATEGORICAL[2], linewidth=1.2, label="settled")
    verdict, why = settling(data)[i]
    limit = values(data, "limit_slope", "case")[i] if "limit_slope" in data else np.nan
    lines = [f"{verdict}: {why}" if why else verdict]
    lines += [f"slope² under the limit {limit:.2g}"] if np.isfinite(limit) else []
    note(ax, "\n".join(lines))
    ax.set_yscale("log")
    if t.size > 1:
        ax.set_xlim(t[0], t[-1])


def _about_weights(data: xr.Dataset, i: int) -> str:
    if "weights_integrable" not in data:
        return ""
    return "\nweights " + ("integrable" if data["weights_integrable"].to_numpy()[i] else "not integrable")
