"""Layout and controls of the interactive figure: bare axes, a play and a pause button, a slider over the frames."""

from collections.abc import Sequence
from typing import Any

GREY = "#8a93a0"  # legible on white and on near-black
FAINT = "rgba(138,147,160,0.3)"
CLEAR = "rgba(0,0,0,0)"
AT_ONCE = {"mode": "immediate", "transition": {"duration": 0}}


def layout(d: int, labels: Sequence[str]) -> dict[str, Any]:
    """Return the layout for tokens in dimension `d` and frames at the times `labels`; it suits light and dark pages."""
    top = 0 if d <= 3 else 44  # room for the labels of the axis
    return {
        "template": "none",
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"color": GREY, "family": "system-ui, sans-serif", "size": 13},
        "margin": {"l": 16 if d <= 3 else 64, "r": 16, "t": 16, "b": 110 if d <= 3 else 160},
        "height": 640,
        "showlegend": False,
        "modebar": {"bgcolor": CLEAR, "color": GREY, "activecolor": GREY},
        "uirevision": "keep",  # a turned sphere stays turned while frames pass
        "sliders": [_slider(labels, top)],
        "updatemenus": [_buttons(top + 62)],
        **_axes(d),
    }


def remark(text: str) -> dict[str, Any]:
    """Return an annotation in the upper left corner."""
    return {
        "text": text,
        "x": 0,
        "y": 1,
        "xref": "paper",
        "yref": "paper",
        "showarrow": False,
    }


def _axes(d: int) -> dict[str, Any]:
    hidden = {"visible": False, "range": [-1.12, 1.12]}
    if d == 3:
        eye = {"x": 0.98, "y": 0.61, "z": 0.47}
        scene = {"xaxis": hidden, "yaxis": hidden, "zaxis": hidden, "aspectmode": "cube", "camera": {"eye": eye}}
        return {"scene": scene}
    if d == 2:
        return {"xaxis": hidden, "yaxis": hidden | {"scaleanchor": "x"}}
    return {
        "xaxis": {"title": {"text": "cosine of a pair of tokens"}, "range": [-1.02, 1.02], "zeroline": False},
        "yaxis": {
            "title": {"text": "share of pairs"},
            "type": "log",
            "range": [-5, 0.1],
            "dtick": 1,
            "exponentformat": "power",
            "gridcolor": FAINT,
        },
        "bargap": 0.05,
    }


def _buttons(top: int) -> dict[str, Any]:
    play = {"frame": {"duration": 50, "redraw": True}, "fromcurrent": True, **AT_ONCE}
    pause = {"frame": {"duration": 0, "redraw": False}, **AT_ONCE}
    return {
        "type": "buttons",
        "direction": "left",
        "showactive": False,
        "x": 0,
        "y": 0,
        "xanchor": "left",
        "yanchor": "top",
        "pad": {"t": top},
        "bgcolor": CLEAR,
        "bordercolor": GREY,
        "buttons": [
            {"label": "▶ play", "method": "animate", "args": [None, play]},
            {"label": "❚❚ pause", "method": "animate", "args": [[None], pause]},
        ],
    }


def _slider(labels: Sequence[str], top: int) -> dict[str, Any]:
    jump = {"frame": {"duration": 0, "redraw": True}, **AT_ONCE}
    return {
        "active": 0,
        "x": 0,
        "len": 1,
        "y": 0,
        "pad": {"t": top},
        "currentvalue": {"prefix": "t = ", "xanchor": "right", "font": {"color": GREY, "size": 14}},
        "ticklen": 0,
        "minorticklen": 0,
        "bordercolor": GREY,
        "bgcolor": FAINT,
        "font": {"color": CLEAR},  # the time stands above the slider; labels at every tick would overlap
        "steps": [{"label": label, "method": "animate", "args": [[str(k)], jump]} for k, label in enumerate(labels)],
    }
