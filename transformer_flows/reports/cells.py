"""The text in the cells of a summary, and what a block of it is."""

import numpy as np
from jaxtyping import Float

Block = tuple[list[str], list[tuple[str, tuple[str, ...]]]]  # names of columns; label and cells of rows


def number(value: float, digits: int = 4) -> str:
    """Return a short text; a dash for a missing value."""
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}g}" if np.isfinite(value) else "–"


def with_spread(sample: Float[np.ndarray, "path"]) -> str:
    """Return mean ± standard deviation over the finite paths, and how many there are if some are missing."""
    finite = sample[np.isfinite(sample)]
    if finite.size == 0:
        return "–"
    text = number(float(finite.mean()))
    if finite.size > 1:
        with np.errstate(over="ignore"):
            text += f" ± {number(float(finite.std(ddof=1)), 2)}"
    return text if finite.size == sample.size else f"{text} ({finite.size} of {sample.size} paths)"
