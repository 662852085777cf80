"""Checks of arguments before any computation. A traced array is never checked here: its value is not known yet."""

from collections.abc import Sequence
from types import UnionType
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
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


def refuse_outside(x: ArrayLike, name: str, least: float, most: float = np.inf, *, slack: float = 0.0) -> None:
    """Raise `ValueError` naming the argument and its first number that is infinite, or outside by more than `slack`.

    NaN is let through: it says itself that it is no number.
    """
    value = concrete(x)
    if value is None:
        return
    outside = (value < least - slack) | (value > most + slack) | np.isinf(value)
    if not outside.any():
        return
    index = tuple(int(i) for i in np.argwhere(outside)[0])
    where = f" at index {index}" if index else ""
    wanted = f"lie in [{least:g}, {most:g}]" if np.isfinite(most) else f"be finite and at least {least:g}"
    raise ValueError(f"{name} must {wanted}; got {value[index]}{where}.")


def refuse_other_keys(keys: Any, name: str, *, many: bool) -> None:
    """Raise `ValueError` naming the argument unless it is one key of JAX, or where `many` an array of keys `(e,)`."""
    dtype, shape = getattr(keys, "dtype", None), getattr(keys, "shape", ())
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    raw = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0))).shape
    entries = () if typed else raw
    axes = len(shape) - len(entries)
    if (typed or dtype == jnp.uint32) and axes == many and shape[axes:] == entries:
        return
    wanted = (
        f"an array of keys (e,), one per member, such as jax.random.split(key, e), or uint32 of shape (e, {raw[0]})"
        if many
        else f"one key such as jax.random.key(0), or uint32 of shape {raw}"
    )
    raise ValueError(f"{name} must be {wanted}; got {type(keys).__name__ if dtype is None else f'{dtype} {shape}'}.")
