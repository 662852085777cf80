"""The tokens of path 0 as a GIF, all numbers of heads side by side."""

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.animation import PillowWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .access import cases, coordinate, values
from .snapshots import draw_tokens, heading
from .style import LEAST_WIDTH, context, sequential

ROUND_MARGINS = {"left": 0.02, "right": 0.98, "bottom": 0.02, "top": 0.84, "wspace": 0.06}
FLAT_MARGINS = {"left": 0.1, "right": 0.98, "bottom": 0.1, "top": 0.84, "wspace": 0.3}


def animate(data: xr.Dataset, path: str | Path, *, frames: int = 60, fps: int = 12, dpi: int = 100) -> Path:
    """Write at most `frames` evenly spaced frames to the GIF `path`, the first and the last state among them.

    Needs `tokens` (heads, frame_t, token, axis). Every frame is drawn from nothing: moving the points of an existing
    picture is where animations lose points or repeat the first frame.
    """
    tokens = values(data, "tokens", "heads", "frame_t", "token", "axis")
    times, labels = coordinate(data, "frame_t"), cases(data, "heads", "$H$")
    chosen = np.unique(np.linspace(0, times.size - 1, min(frames, times.size)).round().astype(int))
    colours = sequential(tokens.shape[2])
    path = Path(path)
    with context():
        # fixed margins and no layout engine: panels must not move with the width of the text
        figure = Figure(figsize=(max(LEAST_WIDTH, 3.0 * len(labels)), 3.4))
        FigureCanvasAgg(figure)
        margins = FLAT_MARGINS if tokens.shape[-1] > 3 else ROUND_MARGINS
        axes = figure.subplots(1, len(labels), squeeze=False, gridspec_kw=margins)
        writer = PillowWriter(fps=fps)
        with writer.saving(figure, str(path), dpi):
            for frame in chosen:
                for ax, state, label in zip(axes[0], tokens[:, frame], labels, strict=True):
                    ax.clear()
                    # a GIF has 256 colours: shading would take them from the tokens
                    draw_tokens(ax, state, colours, shaded=False)
                    ax.set_title(label, loc="center")
                figure.suptitle(f"{heading(tokens.shape[-1], tokens.shape[2])}, $t$ = {times[frame]:.2f}")
                writer.grab_frame()
    return path
