"""R^d itself: nothing to project, nothing to retract."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from .._types import Key, Tokens
from ._manifold import AbstractManifold
from ._norm import norm
from ._size import same_width, size


class Euclidean(AbstractManifold):
    """R^d with straight lines. Raises `ValueError` if `d` is not a positive integer."""

    d: int = eqx.field(static=True)

    def __init__(self, d: int):
        self.d = size(d, "d", 1)

    def project(self, x: Float[Array, "*#batch d"], v: Float[Array, "*#batch d"]) -> Float[Array, "*batch d"]:
        """`v` itself: every vector is tangent."""
        same_width(self.d, "Euclidean", x=x, v=v)
        return jnp.broadcast_to(v, jnp.broadcast_shapes(x.shape, v.shape))

    def retract(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """`x` itself."""
        same_width(self.d, "Euclidean", x=x)
        return x

    def defect(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """0; infinite for a vector that is not finite."""
        same_width(self.d, "Euclidean", x=x)
        return jnp.where(jnp.isfinite(x).all(axis=-1), 0, jnp.inf).astype(x.dtype)

    def exp(self, x: Float[Array, "*#batch d"], v: Float[Array, "*#batch d"]) -> Float[Array, "*batch d"]:
        """x + v."""
        same_width(self.d, "Euclidean", x=x, v=v)
        return x + v

    def log(self, x: Float[Array, "*#batch d"], y: Float[Array, "*#batch d"]) -> Float[Array, "*batch d"]:
        """y - x."""
        same_width(self.d, "Euclidean", x=x, y=y)
        return y - x

    def distance(self, x: Float[Array, "*#batch d"], y: Float[Array, "*#batch d"]) -> Float[Array, "*batch"]:
        """|x - y|; its derivatives are 0 at x = y."""
        same_width(self.d, "Euclidean", x=x, y=y)
        return norm(x - y)

    def squared_distance(self, x: Float[Array, "*#batch d"], y: Float[Array, "*#batch d"]) -> Float[Array, "*batch"]:
        """|x - y|²; smooth everywhere."""
        same_width(self.d, "Euclidean", x=x, y=y)
        return jnp.sum((x - y) ** 2, axis=-1)

    def uniform(self, key: Key, n: int) -> Tokens:
        """`n` independent points of the cube [-1, 1]^d, `(n, d)`: R^d has no uniform probability of its own."""
        return jr.uniform(key, (size(n, "n", 1), self.d), minval=-1.0, maxval=1.0)
