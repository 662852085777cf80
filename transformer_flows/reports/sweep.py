"""The mean of G² against the number of heads, with the fitted power law."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import coordinate, mean_over_paths, values
from .style import CATEGORICAL, INK, axes_or_blank, mark, positive, styled


@styled
def plot_sweep(data: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Draw every path's mean of G² after settling, the mean over paths, and a·H^b with the interval of b.

    Needs `mean_slope` (heads, path); the law needs the attributes `power_prefactor` and `power_exponent`, the band
    `power_exponent_low` and `power_exponent_high`. The band turns the line about the centre of the head counts: it
    shows the uncertainty of the exponent alone.
    """
    figure, ax = axes_or_blank(ax, (5.6, 4.0))
    heads = coordinate(data, "heads")
    means = values(data, "mean_slope", "heads", "path")
    # side by side inside a group, a tenth of a decade wide, so that paths do not hide one another
    spread = 10.0 ** np.linspace(-0.05, 0.05, means.shape[1]) if means.shape[1] > 1 else np.ones(1)
    ax.plot(
        (heads[:, None] * spread).ravel(),
        positive(means).ravel(),
        linestyle="none",
        marker="o",
        markersize=4,
        color=CATEGORICAL[0],
        alpha=0.35,
        markeredgewidth=0,
        label=f"{means.shape[1]} paths" if means.shape[1] > 1 else "one path",
    )
    if heads.size > 1 and np.isfinite(data.attrs.get("power_exponent", np.nan)):
        _draw_law(ax, heads, data.attrs)
    if means.shape[1] > 1:
        average = positive(mean_over_paths(means[..., None])[:, 0])
        ax.plot(heads, average, linestyle="none", marker="D", markersize=7, color=INK, label="arithmetic mean")
    ax.set_xscale("log")
    ax.set_yscale("log")
    mark(ax, heads, [f"{h:g}" for h in heads])
    ax.set_xlabel("number of heads $H$")
    ax.set_ylabel(data["mean_slope"].attrs.get("long_name", "mean of G² after settling"))
    ax.set_title("Mean of $G^2$ against the number of heads")
    ax.legend()
    return figure


def _draw_law(ax: Axes, heads: Float[np.ndarray, "heads"], attributes: dict) -> None:
    a, b = float(attributes["power_prefactor"]), float(attributes["power_exponent"])
    low = float(attributes.get("power_exponent_low", np.nan))
    high = float(attributes.get("power_exponent_high", np.nan))
    x = np.geomspace(heads.min() / 1.3, heads.max() * 1.3, 50)
    interval = f", $b\\in[{low:.2f}, {high:.2f}]$" if np.isfinite([low, high]).all() else ""
    label = f"$a\\,H^b$, $a={a:.3g}$, $b={b:.2f}${interval}"
    ax.plot(x, a * x**b, color=CATEGORICAL[1], label=label, zorder=1)
    if interval:
        centre = np.exp(np.log(heads).mean())
        ax.fill_between(
            x,
            a * centre**b * (x / centre) ** low,
            a * centre**b * (x / centre) ** high,
            color=CATEGORICAL[1],
            alpha=0.15,
            linewidth=0,
            zorder=0,
        )
