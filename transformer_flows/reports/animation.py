"""The tokens of path 0 as a GIF, all numbers of heads side by side."""

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.animation import PillowWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg

from .access import cases, coordinate, values
from .snapshots import draw_tokens, heading
from .style import blank, context, sequential


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
        figure, axes = blank(1, len(labels), panel=(3.2, 3.6))
        FigureCanvasAgg(figure)
        writer = PillowWriter(fps=fps)
        with writer.saving(figure, str(path), dpi):
            for k, frame in enumerate(chosen):
                for ax, state, label in zip(axes[0], tokens[:, frame], labels, strict=True):
                    ax.clear()
                    draw_tokens(ax, state, colours)
                    ax.set_title(label, loc="center")
                figure.suptitle(f"{heading(tokens.shape[-1], tokens.shape[2])}, $t$ = {times[frame]:.2f}")
                if k == 0:
                    figure.draw_without_rendering()
                    figure.set_layout_engine("none")  # panels must not shift with the width of the time
                writer.grab_frame()
    return path
