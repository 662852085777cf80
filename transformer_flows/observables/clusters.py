"""How many clusters the tokens form."""

import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike

from .._checks import concrete
from .._types import Scalar, ScalarLike, Tokens, as_float
from ..dynamics import AbstractFlow
from ._observable import AbstractObservable
from ._pairs import exists_in, squared_distances


class ClusterCount(AbstractObservable[AbstractFlow]):
    """Number of connected components of the graph that joins tokens closer than `radius` in R^d, a scalar.

    A floating number, so that it can be NaN after an early end. Piecewise constant: its gradient is zero. Raises
    `ValueError` for a radius that is negative, NaN or not one number.
    """

    radius: Scalar

    def __init__(self, radius: ArrayLike = 0.1):
        self.radius = as_float(radius)
        value = concrete(self.radius)
        if value is not None and not (value.ndim == 0 and value >= 0):
            raise ValueError(f"radius must be one number that is not negative; got {radius}.")

    def __call__(self, t: ScalarLike, x: Tokens, flow: AbstractFlow) -> Scalar:
        x = jax.lax.stop_gradient(x)
        exists = exists_in(x, flow)
        radius = jax.lax.stop_gradient(self.radius).astype(x.dtype)
        joined = (squared_distances(x, x) < radius**2) & exists[:, None] & exists[None, :]
        labels = _smallest_reachable(joined)
        return jnp.sum(exists & (labels == jnp.arange(x.shape[0]))).astype(x.dtype)


def _smallest_reachable(joined):
    """For every token the smallest index in its component: labels spread along edges, then jump to their label's."""
    n = joined.shape[0]
    index = jnp.arange(n)

    def spread(carry):
        labels, _ = carry
        seen = jnp.min(jnp.where(joined, labels[None, :], n), axis=1)
        new = jnp.minimum(labels, seen)
        new = new[new]
        return new, jnp.any(new != labels)

    labels, _ = jax.lax.while_loop(lambda carry: carry[1], spread, (index, jnp.array(True)))
    return labels
