"""Tokens at chosen times: a row per number of heads, a column per time.

On S² a sphere, on S¹ a circle; in more dimensions the distribution of the cosines of all pairs, since no flat picture
of the tokens keeps their angles.
"""

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import cases, coordinate, snapshot_frames, values
from .sphere import draw_circle, draw_sphere
from .style import CATEGORICAL, MUTED, blank, sequential, styled

BINS = 50


@styled
def plot_snapshots(data: xr.Dataset) -> Figure:
    """Draw the tokens of path 0 at the times in the attribute `snapshots` of `tokens`.

    Needs `tokens` (heads, frame_t, token, axis). The frame nearest to each wished time is drawn, under its own time.
    """
    tokens = values(data, "tokens", "heads", "frame_t", "token", "axis")
    frames = snapshot_frames(data["tokens"])
    times, labels = coordinate(data, "frame_t")[frames], cases(data, "heads", "$H$")
    flat = tokens.shape[-1] > 3
    panel = (2.6, 2.1) if flat else (2.15, 2.15)
    figure, axes = blank(len(labels), len(frames), panel=panel, extra=(0.3, 0.6), sharex=flat, sharey=flat)
    colours = sequential(tokens.shape[2])
    for row, label in enumerate(labels):
        for column, frame in enumerate(frames):
            draw_tokens(axes[row, column], tokens[row, frame], colours)
        axes[row, 0].set_ylabel(f"{label}\nshare of pairs" if flat else label, fontsize=10.5)
    for ax, time in zip(axes[0], times, strict=True):
        ax.set_title(f"$t$ = {time:g}", loc="center")
    for ax in axes[-1] if flat else ():
        ax.set_xlabel(r"$\langle x_i,x_j\rangle$")
    if tokens.shape[-1] == 3:
        figure.supxlabel("first path; colour: token; faint: far side", fontsize=8.5, color=MUTED)
    figure.suptitle(heading(tokens.shape[-1], tokens.shape[2]))
    return figure


def heading(d: int, n: int) -> str:
    """Say what is drawn."""
    if d > 3:
        return f"Cosines of all pairs among {n} tokens in $d$ = {d}"
    return f"{n} tokens on $S^{d - 1}$"


def draw_tokens(ax: Axes, tokens: Float[np.ndarray, "token axis"], colours: list[str], *, shaded: bool = True) -> None:
    """Draw one state in the way that fits its dimension; say so where the run did not reach it."""
    if tokens.shape[-1] == 3:
        draw_sphere(ax, tokens, colours, shaded=shaded)
    elif tokens.shape[-1] == 2:
        draw_circle(ax, tokens, colours)
    else:
        draw_cosines(ax, tokens)
    if not np.isfinite(tokens).all(axis=-1).any():
        ax.text(0.5, 0.5, "not reached", transform=ax.transAxes, ha="center", va="center", color=MUTED, zorder=9)


def draw_cosines(ax: Axes, tokens: Float[np.ndarray, "token axis"]) -> None:
    """Draw the share of pairs in each of `BINS` bins of cosines, on a log axis, where a few strays show too."""
    share, bounds = cosine_shares(tokens)
    floor = 0.5 / max(1, len(tokens) * (len(tokens) - 1) // 2)
    ax.stairs(np.maximum(share, floor), bounds, baseline=floor, fill=True, color=CATEGORICAL[0])
    ax.set_yscale("log")
    ax.set(xlim=(-1.02, 1.02), ylim=(floor, 1.5), xticks=(-1.0, -0.5, 0.0, 0.5, 1.0))
    ax.set_xticklabels(["−1", "", "0", "", "1"])


def cosine_shares(
    tokens: Float[np.ndarray, "token axis"],
) -> tuple[Float[np.ndarray, "bins"], Float[np.ndarray, "bins+1"]]:
    """Return the share of pairs i < j whose cosine lies in each bin, and the bounds of the bins.

    Cosines are clipped to [−1, 1] first, so that rounding puts no equal pair outside; pairs with a missing token are
    left out, and without any pair all shares are 0.
    """
    unit = tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)
    cosines = np.clip((unit @ unit.T)[np.triu_indices(len(unit), 1)], -1.0, 1.0)
    counts, bounds = np.histogram(cosines[np.isfinite(cosines)], BINS, range=(-1.0, 1.0))
    return counts / max(1, counts.sum()), bounds
