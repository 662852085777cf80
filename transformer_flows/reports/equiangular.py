"""Tokens that start at equal angles: their common cosine, and when it reaches a level, against prediction."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import DEPTH, coordinate, values
from .style import axes_or_blank, blank, categorical, plain_labels, positive, sequential, styled

MOST_LABELS = 8


@styled
def plot_equiangular(data: xr.Dataset) -> Figure:
    """Draw the measured cosine over the predicted one, and below it how far they are apart; a column per law.

    Needs `cosine` and `cosine_predicted` (law, beta, t).
    """
    laws, beta, t = [str(law) for law in data["law"].to_numpy()], coordinate(data, "beta"), coordinate(data, "t")
    measured = values(data, "cosine", "law", "beta", "t")
    predicted = values(data, "cosine_predicted", "law", "beta", "t")
    figure, axes = blank(
        2, len(laws), panel=(4.0, 2.7), extra=(1.3, 0.3), sharex=True, sharey="row", height_ratios=(1.6, 1.0)
    )
    for column, law in enumerate(laws):
        upper, lower = axes[:, column]
        _draw_cosines(upper, t, beta, measured[column], predicted[column])
        _draw_errors(lower, t, np.abs(measured[column] - predicted[column]))
        upper.set_title(law)
        lower.set_xlabel(DEPTH)
    axes[0, 0].set_ylabel(r"cosine $\rho(t)$")
    axes[1, 0].set_ylabel(r"$|\rho-\rho_{\mathrm{predicted}}|$")
    axes[0, -1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title="pale: predicted", alignment="left")
    figure.suptitle("Equiangular tokens: measured over predicted")
    return figure


def _draw_cosines(
    ax: Axes,
    t: Float[np.ndarray, "t"],
    beta: Float[np.ndarray, "beta"],
    measured: Float[np.ndarray, "beta t"],
    predicted: Float[np.ndarray, "beta t"],
) -> None:
    named = set(np.linspace(0, beta.size - 1, min(beta.size, MOST_LABELS)).round().astype(int).tolist())
    dot = "o" if t.size == 1 else ""
    for i, colour in enumerate(sequential(beta.size)):
        label = rf"$\beta={beta[i]:g}$" if i in named else "_hidden"
        ax.plot(t, predicted[i], color=colour, linewidth=5.5, alpha=0.3, marker=dot, markersize=10)
        ax.plot(t, measured[i], color=colour, linewidth=1.3, label=label, marker=dot, markersize=4)
    if t.size > 1:
        ax.set_xlim(t[0], t[-1])


def _draw_errors(ax: Axes, t: Float[np.ndarray, "t"], errors: Float[np.ndarray, "beta t"]) -> None:
    for error, colour in zip(errors, sequential(len(errors)), strict=True):
        ax.plot(t, positive(error), color=colour, linewidth=1.1, marker="o" if t.size == 1 else "", markersize=4)
    ax.set_yscale("log")


@styled
def plot_hitting_times(data: xr.Dataset, *, ax: Axes | None = None) -> Figure:
    """Draw the measured hitting times as markers over the predicted ones as lines, against β, on a log axis.

    Needs `hitting_time` and `hitting_time_predicted` (law, beta).
    """
    figure, ax = axes_or_blank(ax, (6.2, 3.9))
    beta = coordinate(data, "beta")
    laws: Sequence[str] = [str(law) for law in data["law"].to_numpy()]
    measured = values(data, "hitting_time", "law", "beta")
    predicted = values(data, "hitting_time_predicted", "law", "beta")
    dash = "_" if beta.size == 1 else ""  # a line through one point is invisible
    for i, colour in enumerate(categorical(len(laws))):
        ax.plot(beta, positive(predicted[i]), color=colour, linewidth=1.4, marker=dash, markersize=16)
        ax.plot(beta, positive(measured[i]), linestyle="none", marker="o", markersize=5, color=colour, label=laws[i])
    ax.set_yscale("log")
    plain_labels(ax)
    ax.set_xlabel(r"inverse temperature $\beta$")
    ax.set_ylabel("hitting time (dimensionless depth)")
    level = data["hitting_time"].attrs.get("level")
    what = "Hitting times" if level is None else rf"Depth at which $\rho = {float(level):g}$"
    ax.set_title(f"{what}: measured (dots), predicted (lines)")
    ax.legend()
    return figure
