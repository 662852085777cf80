"""Tokens on S² and S¹, drawn on flat axes.

The sphere is seen from far away: a point's place on the page is its part in the plane of the page, its depth the part
along the line of sight. Tokens with positive depth are on the near side. Flat axes keep the order of front and back
exact, which a three-dimensional scatter plot over a surface does not.
"""

import functools

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array
from matplotlib.patches import Circle

VIEW = (22.0, 32.0)  # elevation and azimuth of the eye in degrees: no axis and no diagonal points at the reader
FACE = "#f6f7f9"
EDGE = "#9aa3ad"
LINE = "#c3cad2"


def camera(view: tuple[float, float] = VIEW) -> Float[np.ndarray, "3 3"]:
    """Return the rows right, up and towards the eye, orthonormal, for an eye at (elevation, azimuth) in degrees."""
    elevation, azimuth = np.deg2rad(view)
    towards = np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    return np.stack([right, np.cross(towards, right), towards])


def draw_sphere(
    ax: Axes,
    tokens: Float[np.ndarray, "token 3"],
    colours: list[str],
    *,
    view: tuple[float, float] = VIEW,
    shaded: bool = True,
) -> None:
    """Draw a sphere, the tokens of the far side small and faint, those of the near side full."""
    _frame(ax)
    if shaded:
        ax.imshow(_ball(), extent=(-1, 1, -1, 1), zorder=0, interpolation="bilinear")
    else:
        ax.add_patch(Circle((0, 0), 1.0, facecolor=FACE, edgecolor="none", zorder=0))
    ax.add_patch(Circle((0, 0), 1.0, fill=False, edgecolor=EDGE, linewidth=0.9, zorder=4))
    _graticule(ax, view)
    placed = tokens @ camera(view).T
    near = placed[:, 2] >= 0
    rgba = to_rgba_array(colours)
    ax.scatter(*placed[~near, :2].T, s=9, c=rgba[~near], alpha=0.3, linewidths=0, zorder=2)
    ax.scatter(*placed[near, :2].T, s=17, c=rgba[near], alpha=0.95, linewidths=0.35, edgecolors="white", zorder=5)


def draw_circle(ax: Axes, tokens: Float[np.ndarray, "token 2"], colours: list[str]) -> None:
    """Draw the unit circle with its tokens."""
    _frame(ax)
    ax.add_patch(Circle((0, 0), 1.0, facecolor=FACE, edgecolor=EDGE, linewidth=0.9, zorder=0))
    ax.plot(0, 0, marker="+", color=LINE, markersize=6, zorder=1)
    ax.scatter(*tokens.T, s=20, c=to_rgba_array(colours), alpha=0.85, linewidths=0.35, edgecolors="white", zorder=5)


def _frame(ax: Axes) -> None:
    ax.set(xlim=(-1.06, 1.06), ylim=(-1.06, 1.06), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.grid(False)


@functools.cache
def _ball(size: int = 256) -> Float[np.ndarray, "size size 4"]:
    """Return the picture of a matt ball lit from the upper left, transparent outside the disc."""
    x, y = np.meshgrid(np.linspace(-1, 1, size), np.linspace(1, -1, size))
    radius = np.hypot(x, y)
    z = np.sqrt(np.clip(1 - radius**2, 0, None))
    light = np.array([-0.45, 0.55, 0.7]) / np.linalg.norm([-0.45, 0.55, 0.7])
    shade = np.clip(x * light[0] + y * light[1] + z * light[2], 0, 1)
    dark, bright = np.array([0.86, 0.88, 0.91]), np.array([0.985, 0.988, 0.993])
    alpha = np.clip((1 - radius) * size / 2, 0, 1)  # one pixel of soft edge
    return np.dstack([dark + shade[..., None] * (bright - dark), alpha])


def _graticule(ax: Axes, view: tuple[float, float]) -> None:
    """Draw parallels and meridians every 30 degrees, faint on the far side."""
    placed = graticule() @ camera(view).T
    near = placed[..., 2:] >= 0
    for side, alpha, zorder in ((near, 0.8, 3), (~near, 0.3, 1)):
        lines = np.where(side, placed[..., :2], np.nan)
        ax.add_collection(LineCollection(list(lines), colors=LINE, linewidths=0.6, alpha=alpha, zorder=zorder))


@functools.cache
def graticule() -> Float[np.ndarray, "line point 3"]:
    """Return five parallels and six great circles through the poles, 30 degrees apart."""
    turn = np.linspace(0.0, 2 * np.pi, 121)
    steps = np.deg2rad(30.0 * np.arange(6))
    parallels = [place(np.full_like(turn, latitude), turn) for latitude in steps[:5] - np.deg2rad(60.0)]
    meridians = [place(turn, np.full_like(turn, longitude)) for longitude in steps]
    return np.stack(parallels + meridians)


def place(
    latitude: Float[np.ndarray, "*shape"], longitude: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape 3"]:
    """Return the unit vectors at these angles."""
    return np.stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)], axis=-1
    )
