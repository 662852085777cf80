"""Grids of deep networks: the gap energy over depth, and how the cosines of the tokens are distributed."""

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import DEPTH, coordinate, values
from .style import CATEGORICAL, RULE, blank, positive, styled

SIGNS = {1: "attention $+$", 0: "no attention", -1: "attention $-$"}
LEAST_SHARE = 1e-4


@styled
def plot_synchronisation(data: xr.Dataset) -> Figure:
    """Draw the gap energy over depth: a row per dimension and bias, a column per activation, a colour per attention.

    Needs `gap` (case, draw, t), and along `case` `activation`, `d`, `bias` and `attention`.
    """
    t, gap = coordinate(data, "t"), values(data, "gap", "case", "draw", "t")

    def draw(ax: Axes, case: int, colour: str, label: str) -> None:
        low, high = np.nanquantile(gap[case], [0.1, 0.9], axis=0)
        ax.fill_between(t, positive(low), positive(high), color=colour, alpha=0.2, linewidth=0)
        ax.plot(t, positive(np.nanmean(gap[case], axis=0)), color=colour, linewidth=1.5, label=label)
        ax.set_yscale("log")
        ax.set_ylim(1e-4, 2 * np.nanmax(gap))

    figure = _grid(data, draw, DEPTH)
    figure.suptitle("Gap energy $E_\\beta$: mean over draws, and where 80 % of them lie")
    return figure


@styled
def plot_cosines(data: xr.Dataset) -> Figure:
    """Draw the cosines of all pairs at the last layer, in the same grid.

    Needs `cosine_share` (case, record, bin) with the middles of the bins.
    """
    share, centres = values(data, "cosine_share", "case", "record", "bin"), coordinate(data, "bin")

    def draw(ax: Axes, case: int, colour: str, label: str) -> None:
        ax.stairs(np.maximum(share[case, -1], LEAST_SHARE), _edges(centres), color=colour, linewidth=1.3, label=label)
        ax.set_yscale("log")
        ax.set_ylim(LEAST_SHARE, 1.5)

    figure = _grid(data, draw, r"cosine $\langle x_i, x_j\rangle$")
    figure.suptitle(f"Share of the pairs by cosine at $t={coordinate(data, 'record')[-1]:g}$")
    return figure


def _grid(data: xr.Dataset, draw: Callable[[Axes, int, str, str], None], xlabel: str) -> Figure:
    activations = [str(name) for name in data["activation"].to_numpy()]
    dims, bias = coordinate(data, "d"), coordinate(data, "bias")
    signs = data["attention"].to_numpy().astype(int)
    columns = list(dict.fromkeys(activations))
    rows = sorted(set(zip(dims.tolist(), bias.tolist(), strict=True)))
    figure, axes = blank(len(rows), len(columns), panel=(2.3, 1.7), extra=(0.6, 0.9), sharex=True, sharey=True)
    empty = {(row, column) for row in range(len(rows)) for column in range(len(columns))}
    for case, name in enumerate(activations):
        row, column = rows.index((dims[case], bias[case])), columns.index(name)
        label = SIGNS.get(int(signs[case]), str(signs[case]))
        colour = CATEGORICAL[[*SIGNS].index(int(signs[case]))]
        draw(axes[row, column], case, colour, label)
        empty.discard((row, column))
    for row, column in empty:
        axes[row, column].set_visible(False)
    for column, name in enumerate(columns):
        axes[0, column].set_title("no MLP" if name == "none" else name)
    for ax in axes[-1]:
        ax.set_xlabel(xlabel)
    for ax, (d, sigma) in zip(axes[:, 0], rows, strict=True):
        ax.set_ylabel(rf"$d={d:g}$, $\sigma={sigma:g}$")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _edges(centres: np.ndarray) -> np.ndarray:
    half = (centres[1] - centres[0]) / 2
    return np.append(centres - half, centres[-1] + half)


@styled
def plot_order(data: xr.Dataset) -> Figure:
    """Draw both order parameters over depth, a column per activation, and below the last tokens on two of their axes.

    Needs `order` and `nematic_order` (activation, draw, t); the tokens need `end` (activation, token, axis).
    """
    t, names = coordinate(data, "t"), [str(name) for name in data["activation"].to_numpy()]
    order = values(data, "order", "activation", "draw", "t")
    nematic = values(data, "nematic_order", "activation", "draw", "t")
    end = values(data, "end", "activation", "token", "axis") if "end" in data else None
    figure, axes = blank(1 if end is None else 2, len(names), panel=(3.8, 2.9), extra=(0.2, 0.4))
    for i, name in enumerate(names):
        ax = axes[0, i]
        for k in range(order.shape[1]):
            label = {"label": "length of the mean token"} if k == 0 else {}
            ax.plot(t, order[i, k], color=CATEGORICAL[0], linewidth=1.0, **label)
            label = {"label": "largest eigenvalue of the second moment"} if k == 0 else {}
            ax.plot(t, nematic[i, k], color=CATEGORICAL[1], linewidth=1.0, linestyle="--", **label)
        ax.set_title(name)
        ax.set_xlabel(DEPTH)
        ax.set_ylim(0, 1.03)
        if end is not None:
            _draw_end(axes[1, i], end[i])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    figure.suptitle("Order of the tokens over depth, and the tokens at the end")
    return figure


def _draw_end(ax: Axes, x: np.ndarray) -> None:
    """The tokens on the two principal axes of their second moment, within the unit circle."""
    axes = np.linalg.eigh(x.T @ x)[1][:, ::-1][:, :2]
    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(turn), np.sin(turn), color=RULE, linewidth=1.0)
    ax.plot(*(x @ axes).T, linestyle="none", marker="o", markersize=4, color=CATEGORICAL[2], alpha=0.5)
    ax.set_aspect("equal")
    ax.set_xlabel("first principal axis")
    ax.set_ylabel("second")
