"""Shape aliases shared by the whole package; the letters are those of docs/conventions.md.

`n` tokens, `d` ambient dimension, `h` heads, `t` times, `s` knots, `r` queries, `m` attended points.
"""

from collections.abc import Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, PRNGKeyArray, Real, ScalarLike

Scalar = Float[Array, ""]
Tokens = Float[Array, "n d"]
HeadMatrices = Float[Array, "h d d"]
Times = Float[Array, "t"]
TimesLike = Real[ArrayLike, "t"] | Sequence[float]
Knots = Float[Array, "s"]
Valid = Bool[Array, "n"]
Key = PRNGKeyArray
Tree = TypeVar("Tree")

__all__ = [
    "ArrayLike",
    "HeadMatrices",
    "Key",
    "Knots",
    "Scalar",
    "ScalarLike",
    "Times",
    "TimesLike",
    "Tokens",
    "Tree",
    "Valid",
    "as_float",
]


def as_float(x: ArrayLike | Sequence[float]) -> Float[Array, "..."]:
    """Return `x` as a floating array whose dtype is not weak.

    A Python number, an integer array and a weakly typed array would each be a new type to `jit`, hence a new
    trace; converted here they are one type. Strong floating dtypes are kept. Raises `ValueError` for complex numbers.
    """
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.floating) and not x.weak_type:
        return x  # as it is, so that a value known while tracing stays known
    x = jnp.asarray(x)
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise ValueError(f"numbers must be real; got an array of {x.dtype}. Pass its .real, if that is meant.")
    strong = jnp.issubdtype(x.dtype, jnp.floating) and not x.weak_type
    return jnp.asarray(x, x.dtype if strong else jnp.result_type(float))
