"""What is attended to: weighted points."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class Measure(eqx.Module):
    """A discrete measure on R^d. Points are `(m, d)`.

    `weights` `(m,)` may be signed (None: every valid point carries the same mass and the total mass is 1).
    `mask` `(m,)` is False at points that do not exist (padding); None: all exist.
    """

    points: Float[Array, "m d"]
    weights: Float[Array, "m"] | None = None
    mask: Bool[Array, "m"] | None = None

    @property
    def masses(self) -> Float[Array, "m"]:
        """The mass of each point, in the dtype of the points; 0 for points that do not exist."""
        dtype = self.points.dtype
        exists = jnp.ones(self.points.shape[0], dtype) if self.mask is None else self.mask.astype(dtype)
        if self.weights is None:
            return exists / jnp.maximum(jnp.sum(exists), 1)
        weights = self.weights.astype(dtype)
        return weights if self.mask is None else jnp.where(self.mask, weights, 0)
