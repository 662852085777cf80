"""The look of every figure: one rc context, colour-blind safe colours, one way to make a PNG."""

import contextlib
import functools
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, LogFormatter, NullLocator

P = ParamSpec("P")

INK = "#262b33"
MUTED = "#6b7480"
RULE = "#e4e7eb"
# Okabe and Ito's palette without yellow, which is lost on white.
CATEGORICAL = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SEQUENTIAL = "viridis"
# of a value on a log axis: matplotlib's ticks go beyond it by up to twice its length, and must be floats
LEAST, MOST = 1e-80, 1e80
LEAST_WIDTH = 3.4  # of a figure in inches, for its title

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
    "mathtext.fontset": "dejavusans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 7.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.formatter.use_mathtext": True,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "figure.titlesize": 12.5,
    "figure.titleweight": "bold",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 160,
}


@contextlib.contextmanager
def context() -> Iterator[None]:
    """Give matplotlib its defaults plus `STYLE` for a while, whatever the user's own settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def styled(plot: Callable[P, Figure]) -> Callable[P, Figure]:
    """Run a plot function inside `context`, so that global settings are neither used nor changed.

    Where nothing on a log axis can be shown, it says so: matplotlib would refuse to draw the axis.
    """

    @functools.wraps(plot)
    def run(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with context():
            figure = plot(*args, **kwargs)
            for ax in figure.axes:
                if ax.get_yscale() == "log" and not ax.get_ylim()[0] > 0:
                    ax.set_ylim(0.1, 10.0)
                    ax.text(0.5, 0.5, "no values to show", transform=ax.transAxes, ha="center", color=MUTED)
            return figure

    return run


def blank(
    rows: int, columns: int, *, panel: tuple[float, float], extra: tuple[float, float] = (0.0, 0.0), **kwargs: Any
) -> tuple[Figure, np.ndarray]:
    """Return a figure outside pyplot's registry, and its axes as an array (rows, columns).

    `panel` is the size of one panel in inches, `extra` what is added to their sum for a legend beside and titles above.
    """
    size = (max(LEAST_WIDTH, columns * panel[0] + extra[0]), rows * panel[1] + extra[1])
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **kwargs)


def axes_or_blank(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """Return the axes a caller gave with the figure that holds them, or a new pair."""
    if ax is None:
        figure, axes = blank(1, 1, panel=size)
        return figure, axes[0, 0]
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure, ax


def plain_labels(ax: Axes) -> None:
    """Write 3 and not 3 × 10⁰ where the log axis is short enough to have labels between the powers of ten."""
    low, high = ax.get_ylim()
    if high < 1000 * low:
        ax.yaxis.set_major_formatter(LogFormatter())
        ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))


def mark(ax: Axes, places: Float[np.ndarray, "k"], labels: Sequence[str]) -> None:
    """Write these labels on the horizontal axis, and no others."""
    ax.xaxis.set_major_locator(FixedLocator(places.tolist()))
    ax.xaxis.set_major_formatter(FixedFormatter(list(labels)))
    ax.xaxis.set_minor_locator(NullLocator())


def categorical(count: int) -> list[str]:
    """Return `count` colours for unordered cases; beyond the palette, evenly spaced sequential ones."""
    return list(CATEGORICAL[:count]) if count <= len(CATEGORICAL) else sequential(count)


def sequential(count: int, high: float = 0.88) -> list[str]:
    """Return `count` colours for ordered cases, from dark to light, stopping short of pale yellow."""
    return [to_hex(colour) for colour in mpl.colormaps[SEQUENTIAL](np.linspace(0.0, high, count))]


MATHS = {"W₂": "W_2", "G²": "G^2", "ε": r"\varepsilon", "τ": r"\tau", "β": r"\beta", "Λ": r"\Lambda"}
SYMBOLS = re.compile(f"{'|'.join(MATHS)}|\\b[HKn]\\b")  # single letters as words of their own


def typeset(text: str) -> str:
    """Return a text of a record with its symbols as formulas, as figures write them; it must hold no formula yet."""
    return SYMBOLS.sub(lambda match: f"${MATHS.get(match[0], match[0])}$", text)


def positive(array: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Return the values that a log axis can show, NaN elsewhere."""
    with np.errstate(invalid="ignore"):
        return np.where((array > LEAST) & (array < MOST), array, np.nan)


PALE = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5}


def note(ax: Axes, text: str) -> None:
    """Write a small remark in the lower left corner."""
    ax.text(0.015, 0.02, text, transform=ax.transAxes, fontsize=7.5, color=MUTED, va="bottom", zorder=6, bbox=PALE)


def png(figure: Figure, title: str = "") -> bytes:
    """Return the figure as PNG; `title` goes to the file's metadata, so that a copied picture keeps its origin."""
    buffer = io.BytesIO()
    with context(), _laid_out_once(figure):
        figure.savefig(buffer, format="png", metadata={"Title": title} if title else {})
    return buffer.getvalue()


@contextlib.contextmanager
def _laid_out_once(figure: Figure) -> Iterator[None]:
    """Matplotlib would lay the figure out twice to save it, and the layout is most of the work."""
    engine = figure.get_layout_engine()
    if engine is None:
        yield
        return
    engine.execute(figure)
    figure.set_layout_engine("none")
    try:
        yield
    finally:
        figure.set_layout_engine(engine)
