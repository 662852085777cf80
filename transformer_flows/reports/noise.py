"""Laws under common noise: spectrum, correlation, cosine of two tokens and gap energy, measured and predicted."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import DEPTH, coordinate, values
from .style import CATEGORICAL, INK, blank, positive, sequential, styled

BLUE = CATEGORICAL[0]


@styled
def plot_noise_rates(data: xr.Dataset) -> Figure:
    """Draw four panels, measured in colour over predicted in black.

    Needs `exponent` (draw_long, index), `token_correlation`, `pair_cosine` and `noise_gap` (draw, t), what is predicted
    of them, and the quantiles `pair_cosine_law` (quantile, t).
    """
    figure, axes = blank(2, 2, panel=(4.3, 3.1), extra=(0.2, 0.3))
    t = coordinate(data, "t")
    _spectrum(axes[0, 0], data)
    _mean(axes[0, 1], t, values(data, "token_correlation", "draw", "t"))
    axes[0, 1].plot(t, values(data, "token_correlation_predicted", "t"), color=INK, linewidth=1.2, label="predicted")
    axes[0, 1].set_title("A token and its start")
    axes[0, 1].set_ylabel(r"mean of $\langle X_t, X_0\rangle$")
    _laws(axes[1, 0], data, t)
    _mean(axes[1, 1], t, values(data, "noise_gap", "draw", "t"))
    bound = positive(values(data, "noise_gap_bound", "t"))
    axes[1, 1].plot(t, bound, color=INK, linewidth=1.2, linestyle="--", label="bound")
    axes[1, 1].set_yscale("log")
    axes[1, 1].set_title("Gap energy")
    axes[1, 1].set_ylabel(r"mean of $E_\beta$")
    for ax in axes[:, 1]:
        ax.set_xlabel(DEPTH)
        ax.legend()
    figure.suptitle("Common noise: measured (colour, two standard errors), predicted (black)")
    return figure


def _spectrum(ax: Axes, data: xr.Dataset) -> None:
    index, drawn = coordinate(data, "index"), values(data, "exponent", "draw_long", "index")
    error = 2 * drawn.std(axis=0) / np.sqrt(len(drawn))
    ax.errorbar(index, drawn.mean(axis=0), error, color=BLUE, linestyle="none", marker="o", markersize=4, capsize=3)
    ax.plot(index, values(data, "exponent_predicted", "index"), color=INK, linestyle="none", marker="_", markersize=18)
    ax.set_xticks(index)
    ax.set_title("Lyapunov exponents")
    ax.set_xlabel("index $i$")
    ax.set_ylabel(r"$\lambda_i$")


def _mean(ax: Axes, t: np.ndarray, drawn: np.ndarray) -> None:
    mean, error = drawn.mean(axis=0), 2 * drawn.std(axis=0) / np.sqrt(len(drawn))
    ax.errorbar(t, mean, error, color=BLUE, linestyle="none", marker="o", markersize=4, capsize=3, label="measured")


def _laws(ax: Axes, data: xr.Dataset, t: np.ndarray) -> None:
    """Distribution functions at a few times: steps of the draws over the curve of the scalar law."""
    cosine, level = values(data, "pair_cosine", "draw", "t"), coordinate(data, "quantile")
    law = values(data, "pair_cosine_law", "quantile", "t")
    shown = np.unique(np.linspace(1, t.size - 1, min(3, t.size - 1)).round().astype(int))
    for k, colour in zip(shown, sequential(shown.size), strict=True):
        ax.plot(law[:, k], level, color=INK, linewidth=1.0)
        ax.ecdf(cosine[:, k], color=colour, linewidth=1.3, label=f"$t={t[k]:.3g}$")
    ax.set_title("Cosine of two tokens")
    ax.set_xlabel(r"$\rho$")
    ax.set_ylabel("probability of less")
    ax.legend(loc="upper left")
