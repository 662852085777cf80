"""Checks of arguments before any computation. A traced array is never checked here: its value is not known yet."""

from collections.abc import Sequence
from types import UnionType
from typing import Any

import jax.core
import numpy as np
from jaxtyping import ArrayLike


def concrete(x: ArrayLike | Sequence[float] | None) -> np.ndarray | None:
    """`x` on the host, or None where it is traced (or None)."""
    return None if x is None or isinstance(x, jax.core.Tracer) else np.asarray(x)


def refuse_non_finite(x: ArrayLike, name: str, advice: str = "") -> None:
    """Raise `ValueError` naming the argument and the first index at which it is NaN or infinite."""
    value = concrete(x)
    if value is None or np.isfinite(value).all():
        return
    index = tuple(int(i) for i in np.argwhere(~np.isfinite(value))[0])
    where = f" at index {index}" if index else ""
    raise ValueError(f"{name} must be finite; got {value[index]}{where}." + (f" Hint: {advice}." if advice else ""))


def refuse_other_type(x: Any, name: str, kind: type | UnionType, advice: str) -> None:
    """Raise `ValueError` naming the argument unless it is an instance of `kind`."""
    if not isinstance(x, kind):
        raise ValueError(f"{name} must be {advice}; got {x!r:.80}.")


def refuse_other_count(x: Any, name: str, least: int) -> None:
    """Raise `ValueError` naming the argument unless it is an int of at least `least`; a truth value is none."""
    if isinstance(x, bool) or not isinstance(x, int) or x < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {x!r}.")
