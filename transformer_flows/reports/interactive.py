"""Tokens to turn and to play: a plotly figure with a play button and a slider, one number of heads at a time.

On S² a sphere, on S¹ a circle, in more dimensions the distribution of the cosines of all pairs.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr
from jaxtyping import Float, Int

from . import player
from .access import coordinate, snapshot_frames, values
from .snapshots import BINS, cosine_shares
from .sphere import graticule, place
from .style import CATEGORICAL, sequential

TOKEN_BYTES = 2_000_000  # of all frames of all head counts of one page, as encoded in it
MOST_FRAMES = 256
FEWEST_FRAMES = 20
BALL = "#dfe5ec"


def interactive_tokens(data: xr.Dataset, heads: int | None = None, *, token_bytes: int = TOKEN_BYTES) -> go.Figure:
    """Return the frames of the tokens of path 0 for one number of heads (the first one unless given).

    Frames, then tokens, are thinned evenly until the encoded tokens take at most `token_bytes`. The first frame and the
    figure's own data are separate arrays: a player that writes into the one must not change the other.
    """
    counts = data["heads"].to_numpy().tolist()
    if heads is not None and heads not in counts:
        raise ValueError(f"heads: got {heads}, but the run has {counts}; take one of these")
    index = 0 if heads is None else counts.index(heads)
    tokens = values(data, "tokens", "heads", "frame_t", "token", "axis")[index]
    d, n = tokens.shape[-1], tokens.shape[1]
    # above three dimensions a frame is a histogram of all tokens, whatever their number
    shape = tokens.shape if d <= 3 else (len(tokens), BINS, 1)
    frames, shown = thin(shape, token_bytes, keep=snapshot_frames(data["tokens"]))
    shown = shown if d <= 3 else np.arange(n)
    times = coordinate(data, "frame_t")[frames]
    states = tokens[frames][:, shown]
    scenery = _sphere() if d == 3 else _circle() if d == 2 else []
    labels = [f"{time:.4g}" for time in times]
    figure = go.Figure(
        data=[*scenery, _trace(states[0], shown, n)],
        layout=player.layout(d, labels),
        frames=[go.Frame(data=[_moving(state)], name=str(k), traces=[len(scenery)]) for k, state in enumerate(states)],
    )
    if shown.size < n:
        figure.add_annotation(player.remark(f"{shown.size} of {n} tokens shown"))
    return figure


def thin(
    shape: tuple[int, int, int], budget: int, *, keep: Int[np.ndarray, "k"]
) -> tuple[Int[np.ndarray, "frames"], Int[np.ndarray, "tokens"]]:
    """Return which frames and which tokens of an array (frame, token, axis) fit into `budget` bytes.

    At most `MOST_FRAMES` evenly spaced frames with the first, the last and those in `keep`; tokens are left out only
    when fewer than `FEWEST_FRAMES` frames would fit.
    """
    count, n, d = shape
    least = min(count, FEWEST_FRAMES + keep.size)
    # the figure's own data is one state more
    n_shown = int(np.clip(budget // ((least + 1) * encoded_bytes(1, d)), 1, n))
    affordable = max(1, budget // encoded_bytes(n_shown, d) - 1)
    even = np.linspace(0, count - 1, int(np.clip(affordable - keep.size, 1, min(count, MOST_FRAMES))))
    frames = np.union1d(even.round().astype(int), keep[: max(0, affordable - even.size)])
    return frames, np.unique(np.linspace(0, n - 1, n_shown).round().astype(int))


def encoded_bytes(n: int, d: int) -> int:
    """Return the size of one state in the page: a single-precision base64 array per axis."""
    return d * 4 * -(-4 * n // 3)


def _moving(state: Float[np.ndarray, "token axis"]) -> Any:
    """Return what changes from frame to frame, in arrays that nothing else refers to."""
    if state.shape[-1] > 3:
        return go.Bar(y=cosine_shares(state)[0].astype(np.float32))
    trace = go.Scatter3d if state.shape[-1] == 3 else go.Scatter
    return trace(**_coordinates(state))


def _trace(state: Float[np.ndarray, "shown axis"], shown: Int[np.ndarray, "shown"], n: int) -> Any:
    """Return the moving trace with its look; colours are those of the tokens in the figures."""
    trace = _moving(state)
    if state.shape[-1] > 3:
        bounds = cosine_shares(state)[1]
        return trace.update(x=((bounds[1:] + bounds[:-1]) / 2).astype(np.float32), marker={"color": CATEGORICAL[0]})
    palette = sequential(n)
    size = 4.5 if state.shape[-1] == 3 else 8
    marker = {"size": size, "color": [palette[i] for i in shown], "line": {"width": 0}}
    return trace.update(mode="markers", marker=marker, text=[f"token {i}" for i in shown], hoverinfo="text")


def _sphere() -> list[Any]:
    """Return a pale ball, slightly smaller than the tokens' sphere so that they stand on it, and its graticule."""
    latitude, longitude = np.meshgrid(np.linspace(-np.pi / 2, np.pi / 2, 41), np.linspace(0, 2 * np.pi, 81))
    ball = place(latitude, longitude)
    surface = go.Surface(
        **_coordinates(0.98 * ball),
        opacity=0.55,
        showscale=False,
        hoverinfo="skip",
        colorscale=[[0, BALL], [1, BALL]],
        lighting={"ambient": 0.92, "diffuse": 0.12, "specular": 0.0},
        contours={axis: {"highlight": False} for axis in "xyz"},
    )
    # a missing point ends each line, so that all lines are one trace
    broken = np.pad(graticule(), ((0, 0), (0, 1), (0, 0)), constant_values=np.nan).reshape(-1, 3)
    lines = go.Scatter3d(
        **_coordinates(0.992 * broken), mode="lines", hoverinfo="skip", line={"color": "#aab3bd", "width": 1.5}
    )
    return [surface, lines]


def _coordinates(points: Float[np.ndarray, "*shape axis"]) -> dict[str, np.ndarray]:
    """Return x, y, z as new single-precision arrays."""
    return {name: points[..., k].astype(np.float32) for k, name in enumerate("xyz"[: points.shape[-1]])}


def _circle() -> list[Any]:
    turn = np.linspace(0, 2 * np.pi, 181)
    ring = _coordinates(np.stack([np.cos(turn), np.sin(turn)], axis=-1))
    return [go.Scatter(**ring, mode="lines", hoverinfo="skip", line={"color": player.GREY, "width": 1})]
