"""The weighted distance between its bounds."""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import coordinate, values
from .style import CATEGORICAL, MUTED, axes_or_blank, plain_labels, styled


@styled
def plot_distances(data: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Draw W_{m,2}/W_2 of every pair of clouds against the norm of the heads, with the bounds e^{∓Λ/2}.

    Needs `distance_value`, `distance_lower` and `distance_upper` (norm, draw); W_2 is the geometric mean of the bounds.
    """
    figure, ax = axes_or_blank(ax, (6.0, 3.9))
    norm = coordinate(data, "norm")
    value, lower, upper = (values(data, f"distance_{name}", "norm", "draw") for name in ("value", "lower", "upper"))
    plain = (lower * upper) ** 0.5
    ax.fill_between(norm, (lower / plain)[:, 0], (upper / plain)[:, 0], color=MUTED, alpha=0.15, linewidth=0)
    for bound, label in ((lower, r"bounds $e^{\mp\Lambda/2}$"), (upper, None)):
        ax.plot(norm, (bound / plain)[:, 0], color=MUTED, linestyle="--", linewidth=1.2, label=label)
    for k, ratio in enumerate((value / plain).T):
        label = f"{value.shape[1]} pairs of clouds" if k == 0 else None
        ax.plot(norm, ratio, color=CATEGORICAL[0], marker="o", markersize=4, linewidth=1.0, alpha=0.7, label=label)
    ax.set_yscale("log")
    plain_labels(ax)
    ax.set_xlabel(r"largest norm of the heads $\Lambda$")
    ax.set_ylabel("$W_{m,2}/W_2$")
    ax.set_title("The weighted distance between its bounds")
    ax.legend(loc="upper left")
    return figure
