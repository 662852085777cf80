"""Tokens with tangent vectors: the states of a linearised flow."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from .._checks import concrete
from .._types import Key, Tokens
from ._manifold import AbstractManifold, AbstractSpace
from ._off import refuse_off_manifold
from ._size import size


class Frame(eqx.Module):
    """Tokens `x` `(n, d)` with k tangent vectors of all tokens together, `vectors` `(k, n, d)`, orthonormal.

    `growth` `(k,)` are the logarithms of what was taken off the lengths to keep them so: the sums of the first i are
    those of the volume that the first i vectors span. Divided by time they tend to the Lyapunov exponents.
    """

    x: Tokens
    vectors: Float[Array, "k n d"]
    growth: Float[Array, "k"]


class FrameBundle(AbstractSpace):
    """Frames of tokens on `base`. Raises `ValueError` where `base` is no manifold."""

    base: AbstractManifold

    rescales: ClassVar[bool] = True

    def retract(self, x: Frame) -> Frame:
        """Tokens retracted, vectors moved by the derivative of that and made orthonormal (QR), lengths to `growth`."""
        tokens, derivative = jax.linearize(self.base.retract, x.x)
        vectors = jax.vmap(derivative)(x.vectors)
        k, n, d = vectors.shape
        q, r = jnp.linalg.qr(vectors.reshape(k, n * d).T)
        lengths = jnp.diagonal(r)
        vectors = (q * jnp.sign(lengths)[None]).T.reshape(k, n, d)
        return Frame(tokens, vectors, x.growth + jnp.log(jnp.abs(lengths)))

    def frame(self, key: Key, x: Tokens, count: int) -> Frame:
        """A frame of `count` random tangent vectors at tokens `(n, d)`.

        Raises `ValueError` for tokens off the base, and for more vectors than there are tangent directions.
        """
        value = concrete(x)
        if value is not None:
            refuse_off_manifold(value, "x", self.base)
        if size(count, "count", 1) > x.size:
            raise ValueError(f"count must be at most the number of coordinates, {x.size}; got {count}.")
        none = jnp.zeros(count, x.dtype)
        # folded, since a key that has drawn the tokens too would give vectors along them
        vectors = jr.normal(jr.fold_in(key, count), (count, *x.shape), x.dtype)
        frame = self.retract(Frame(x, vectors, none))
        lost = concrete(frame.growth)
        if lost is not None and not (lost > 0.5 * math.log(jnp.finfo(x.dtype).eps)).all():
            raise ValueError(f"count must be at most the number of tangent directions of the tokens; got {count}.")
        return eqx.tree_at(lambda frame: frame.growth, frame, none)
