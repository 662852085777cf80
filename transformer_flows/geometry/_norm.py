"""Length and direction of vectors, with finite derivatives at zero and no overflow or underflow of the square.

Compiled as wholes for calls outside of `jit`, where a dozen operations would be compiled one by one.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@functools.partial(jax.jit, inline=True)
def norm(v: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
    """Euclidean length over the last axis; its derivatives at v = 0 are 0 instead of NaN."""
    scale, _, length = _scaled(v)
    return scale[..., 0] * length[..., 0]


@functools.partial(jax.jit, inline=True)
def unit(v: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """v/|v| over the last axis; 0 with zero derivatives at v = 0."""
    _, w, length = _scaled(v)
    zero = length == 0
    return jnp.where(zero, 0, w / jnp.where(zero, 1, length))


def _scaled(v: Float[Array, "*batch d"]) -> tuple[Array, Array, Array]:
    """The largest |entry| s, v/s and |v/s|, each with its last axis kept.

    s needs no derivative: s|v/s| and (v/s)/|v/s| do not depend on it.
    """
    s = jax.lax.stop_gradient(jnp.max(jnp.abs(v), axis=-1, keepdims=True))
    s = jnp.where((s > 0) & jnp.isfinite(s), s, 1)
    w = v / s
    square = jnp.sum(w * w, axis=-1, keepdims=True)
    zero = square == 0
    # The root is never taken at 0: its infinite slope times 0 would be NaN in a derivative.
    return s, w, jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, square)))
