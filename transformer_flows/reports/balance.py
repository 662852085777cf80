"""The energy balance: its terms over depth, and what is left when they are added up.

E(t) − E(0) = weight drift + Itô term + martingale − dissipation + residual,   all accumulated from t = 0
"""

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import DEPTH, cases, coordinate, curves, mean_over_paths, present
from .style import CATEGORICAL, INK, MUTED, blank, positive, styled

# name in the Dataset: legend, colour, sign in the balance
TERMS = {
    "balance_energy_change": ("$E(t)-E(0)$", INK, 1.0),
    "balance_weight_drift": ("weight drift", CATEGORICAL[0], 1.0),
    "balance_ito": ("Itô term", CATEGORICAL[2], 1.0),
    "balance_martingale": ("martingale", CATEGORICAL[3], 1.0),
    "balance_dissipation": ("− dissipation", CATEGORICAL[1], -1.0),
}


@styled
def plot_balance(data: xr.Dataset, *, path: int = 0) -> Figure:
    """Draw the terms of the balance on one path, and below it the residuals of all paths; a column per head count.

    Needs `balance_energy_change` and `balance_dissipation` (heads, path, t); the other terms are optional.
    One path and no mean above, because the martingale averages out over paths while the balance holds on each.
    """
    labels, t = cases(data, "heads", "$H$"), coordinate(data, "t")
    figure, axes = blank(
        2, len(labels), panel=(3.6, 2.9), extra=(1.6, 0.3), sharex=True, sharey="row", height_ratios=(1.25, 1.0)
    )
    terms = {name: curves(data, name)[:, path] for name in present(data, TERMS) if not absent(data, name)}
    residuals = _residuals(data)
    scale = curves(data, "balance_energy_change")
    for column, label in enumerate(labels):
        upper, lower = axes[:, column]
        _draw_terms(upper, t, {name: term[column] for name, term in terms.items()})
        _draw_residuals(lower, t, {name: residual[column] for name, residual in residuals.items()}, scale[column])
        upper.set_title(label)
        lower.set_xlabel(DEPTH)
    axes[0, 0].set_ylabel(f"accumulated, path {data['path'].to_numpy()[path]}")
    axes[1, 0].set_ylabel("|residual|, all paths")
    bold = "thin: all paths\nbold: root mean square" if data.sizes["path"] > 1 else None
    for ax, title in zip(axes[:, -1], (None, bold), strict=True):
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title=title, alignment="left", title_fontsize=8.5)
    figure.suptitle("Energy balance")
    return figure


def absent(data: xr.Dataset, name: str) -> bool:
    """Say whether a term is 0 on all paths at all times after the start, as those of the noise are without noise."""
    return data.sizes["t"] > 1 and not curves(data, name).any()


def _draw_terms(ax: Axes, t: Float[np.ndarray, "t"], terms: dict[str, np.ndarray]) -> None:
    ax.axhline(0.0, color=MUTED, linewidth=0.7)
    for name, term in terms.items():
        label, colour, sign = TERMS[name]
        width = 2.2 if name == "balance_energy_change" else 1.4
        ax.plot(t, sign * term, color=colour, label=label, linewidth=width, marker=_dot(t), markersize=4)
    if t.size > 1:
        ax.set_xlim(t[0], t[-1])


def _residuals(data: xr.Dataset) -> dict[str, Float[np.ndarray, "heads path t"]]:
    """Return the residuals to draw by legend, given or closed; without one, an empty dict."""
    if "balance_residual" not in data:
        return {}
    plain = curves(data, "balance_residual")
    if "balance_remainder" not in data or absent(data, "balance_remainder"):
        return {"residual": plain}
    return {"residual": plain, "closed on\nevery path": plain - curves(data, "balance_remainder")}


def _draw_residuals(
    ax: Axes, t: Float[np.ndarray, "t"], residuals: dict[str, np.ndarray], scale: Float[np.ndarray, "path t"]
) -> None:
    """Draw |residual| of every path thin and the root mean square over the finite paths bold, on a log axis."""
    for colour, (label, residual) in zip(CATEGORICAL[1::-1], residuals.items(), strict=False):
        if len(residual) > 1:
            ax.plot(t, positive(np.abs(residual)).T, color=colour, linewidth=0.5, alpha=0.3)
        ax.plot(t, positive(rms(residual)), color=colour, label=label, marker=_dot(t), markersize=4)
    ax.plot(t, positive(rms(scale)), color=MUTED, linestyle=":", linewidth=1.2, label="$|E(t)-E(0)|$")
    ax.set_yscale("log")


def rms(paths: Float[np.ndarray, "path t"]) -> Float[np.ndarray, "t"]:
    """Return the root mean square over the finite paths."""
    with np.errstate(over="ignore"):  # a square beyond the floats is inf, which no axis shows
        return np.sqrt(mean_over_paths(paths**2))


def _dot(t: Float[np.ndarray, "t"]) -> str:
    """A line through one point is invisible."""
    return "o" if t.size == 1 else ""
