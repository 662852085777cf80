"""Arguments of predictions, as arrays; refused outside of where a formula holds, where their values are known."""

from jaxtyping import Array, ArrayLike, Float

from .._checks import refuse_outside
from .._types import as_float

_OFF = 1e-3  # how far from ±1 a cosine may be by the rounding of its tokens


def cosine(x: ArrayLike, name: str) -> Float[Array, "..."]:
    """Raises `ValueError` beyond ±1."""
    refuse_outside(x, name, -1.0, 1.0, slack=_OFF)  # before it is an array, since jit traces all arrays
    return as_float(x)


def not_negative(x: ArrayLike, name: str) -> Float[Array, "..."]:
    """Raises `ValueError` below 0, and for infinity."""
    refuse_outside(x, name, 0.0)
    return as_float(x)
