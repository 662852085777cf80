"""Tokens to turn and to play: a plotly figure with a play button and a slider, one number of heads at a time.

On S² a sphere, on S¹ a circle, in more dimensions the distribution of the cosines of all pairs.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr
from jaxtyping import Float, Int

from .access import coordinate, snapshot_frames, values
from .snapshots import cosine_shares
from .style import CATEGORICAL, sequential

TOKEN_BYTES = 2_000_000  # of all frames of all head counts of one page, as encoded in it
MOST_FRAMES = 200
FEWEST_FRAMES = 20
GREY = "#8a93a0"  # legible on white and on near-black


def interactive_tokens(data: xr.Dataset, heads: float | None = None, *, token_bytes: int = TOKEN_BYTES) -> go.Figure:
    """Return the frames of the tokens of path 0 for one number of heads (the first one unless given).

    Frames, then tokens, are thinned evenly until the encoded tokens take at most `token_bytes`. The first frame and the
    figure's own data are separate arrays: a player that writes into the one must not change the other.
    """
    counts = coordinate(data, "heads")
    index = 0 if heads is None else int(np.flatnonzero(counts == heads)[0])
    tokens = values(data, "tokens", "heads", "frame_t", "token", "axis")[index]
    d, n = tokens.shape[-1], tokens.shape[1]
    frames, shown = thin(tokens.shape, token_bytes, keep=snapshot_frames(data["tokens"]))
    if d > 3:
        shown = np.arange(n)  # a histogram has a fixed size and needs all tokens
    times = coordinate(data, "frame_t")[frames]
    states = tokens[frames][:, shown]
    colours = [colour for i, colour in enumerate(sequential(n)) if i in set(shown.tolist())]
    scenery = _sphere() if d == 3 else _circle() if d == 2 else []
    labels = [f"{time:.4g}" for time in times]
    figure = go.Figure(
        data=[*scenery, _trace(states[0], colours)],
        layout=_layout(d, labels),
        frames=[go.Frame(data=[_moving(state)], name=str(k), traces=[len(scenery)]) for k, state in enumerate(states)],
    )
    if shown.size < n:
        figure.add_annotation(
            text=f"{shown.size} of {n} tokens shown", x=0, y=1, xref="paper", yref="paper", showarrow=False
        )
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
    axes = {name: state[:, k].astype(np.float32) for k, name in enumerate("xyz"[: state.shape[-1]])}
    return go.Scatter3d(**axes) if state.shape[-1] == 3 else go.Scatter(**axes)


def _trace(state: Float[np.ndarray, "token axis"], colours: list[str]) -> Any:
    """Return the moving trace with its look."""
    trace = _moving(state)
    if state.shape[-1] > 3:
        bounds = cosine_shares(state)[1]
        return trace.update(x=((bounds[1:] + bounds[:-1]) / 2).astype(np.float32), marker={"color": CATEGORICAL[0]})
    size = 4.5 if state.shape[-1] == 3 else 8
    marker = {"size": size, "color": colours, "line": {"width": 0.5, "color": "white"}}
    return trace.update(mode="markers", marker=marker, hovertemplate="token %{pointNumber}<extra></extra>")


def _sphere() -> list[Any]:
    """Return a pale ball slightly smaller than the tokens' sphere, so that tokens stand on it, and its parallels."""
    latitude, longitude = np.linspace(-np.pi / 2, np.pi / 2, 41), np.linspace(0, 2 * np.pi, 81)
    ring = np.cos(latitude)[:, None]
    ball = [ring * np.cos(longitude), ring * np.sin(longitude), np.sin(latitude)[:, None] * np.ones(81)]
    x, y, z = (0.985 * part.astype(np.float32) for part in ball)
    surface = go.Surface(
        x=x, y=y, z=z, opacity=0.55, showscale=False, hoverinfo="skip", colorscale=[[0, "#d5dbe2"], [1, "#d5dbe2"]],
        lighting={"ambient": 0.75, "diffuse": 0.35, "specular": 0.05}, contours={"x": {"highlight": False}, "y": {"highlight": False}, "z": {"highlight": False}},
    )  # fmt: skip
    lines = go.Scatter3d(**_lines(ball), mode="lines", hoverinfo="skip", line={"color": "#aab3bd", "width": 1.5})
    return [surface, lines]


def _lines(ball: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Return every 30th degree of latitude and longitude as one broken line; the grid of `ball` has steps of 4.5°."""
    gap = np.full(1, np.nan)
    parallels = np.deg2rad(np.arange(-60, 61, 30))
    turn = np.linspace(0, 2 * np.pi, 91)
    rings = [(np.cos(a) * np.cos(turn), np.cos(a) * np.sin(turn), np.full(91, np.sin(a))) for a in parallels]
    rings += [
        (np.sin(turn) * np.cos(a), np.sin(turn) * np.sin(a), np.cos(turn)) for a in np.deg2rad(np.arange(0, 180, 30))
    ]
    return {
        name: np.concatenate([part for ring in rings for part in (ring[k], gap)]).astype(np.float32)
        for k, name in enumerate("xyz")
    }


def _circle() -> list[Any]:
    turn = np.linspace(0, 2 * np.pi, 181)
    x, y = np.cos(turn).astype(np.float32), np.sin(turn).astype(np.float32)
    return [go.Scatter(x=x, y=y, mode="lines", hoverinfo="skip", line={"color": GREY, "width": 1})]


def _layout(d: int, labels: list[str]) -> dict[str, Any]:
    """Return the layout: bare axes with equal scales, controls below, colours that fit a light and a dark page."""
    hidden = {"visible": False, "range": [-1.12, 1.12]}
    layout: dict[str, Any] = {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": GREY, "family": "system-ui, sans-serif", "size": 13},
        "margin": {"l": 10, "r": 10, "t": 10, "b": 10},
        "height": 620,
        "showlegend": False,
        "uirevision": "keep",  # a turned sphere stays turned while frames pass
        "updatemenus": [_buttons()],
        "sliders": [_slider(labels)],
    }
    if d == 3:
        layout["scene"] = {
            "xaxis": hidden, "yaxis": hidden, "zaxis": hidden, "aspectmode": "cube",
            "camera": {"eye": {"x": 1.1, "y": 0.7, "z": 0.55}},
        }  # fmt: skip
    elif d == 2:
        layout |= {"xaxis": hidden, "yaxis": hidden | {"scaleanchor": "x"}}
    else:
        layout |= {
            "xaxis": {"title": {"text": "cosine of a pair of tokens"}, "range": [-1.02, 1.02], "zeroline": False},
            "yaxis": {"title": {"text": "share of pairs"}, "range": [0, 1], "gridcolor": "rgba(138,147,160,0.25)"},
            "margin": {"l": 60, "r": 10, "t": 10, "b": 10},
            "bargap": 0.05,
        }
    return layout


def _buttons() -> dict[str, Any]:
    play = {"frame": {"duration": 50, "redraw": True}, "fromcurrent": True, "transition": {"duration": 0}}
    stop = {"frame": {"duration": 0, "redraw": False}, "mode": "immediate", "transition": {"duration": 0}}
    return {
        "type": "buttons", "direction": "left", "showactive": False, "x": 0, "y": 0, "xanchor": "left", "yanchor": "top",
        "pad": {"t": 30}, "bgcolor": "rgba(0,0,0,0)", "bordercolor": GREY,
        "buttons": [
            {"label": "▶ play", "method": "animate", "args": [None, play | {"mode": "immediate"}]},
            {"label": "❚❚", "method": "animate", "args": [[None], stop]},
        ],
    }  # fmt: skip


def _slider(labels: list[str]) -> dict[str, Any]:
    jump = {"frame": {"duration": 0, "redraw": True}, "mode": "immediate", "transition": {"duration": 0}}
    return {
        "active": 0, "x": 0.16, "len": 0.84, "y": 0, "pad": {"t": 20}, "currentvalue": {"prefix": "t = ", "xanchor": "right"},
        "ticklen": 0, "minorticklen": 0, "tickwidth": 0, "bordercolor": GREY, "bgcolor": "rgba(138,147,160,0.3)",
        "font": {"color": "rgba(0,0,0,0)"},
        "steps": [{"label": label, "method": "animate", "args": [[str(k)], jump]} for k, label in enumerate(labels)],
    }  # fmt: skip
