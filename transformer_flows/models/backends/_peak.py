"""The limit of infinite β on a set of queries: the largest score and the mean over its maximisers."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from ._charges import Charges


def peak(
    queries: Float[Array, "h r d"], c: Charges, seen: Bool[Array, "#r m"] | None
) -> tuple[Float[Array, "h r"], Float[Array, "h r v"]]:
    """Largest visible score and mean of the values over its maximisers, which share by weight.

    Points of weight 0 are not in the measure. The mean has no derivative in the scores; the largest score moves
    with the mean of its maximisers. A query that sees nothing: -inf and 0.
    """
    weights = lax.stop_gradient(c.charges[-1])
    carried = (weights != 0)[None]
    seen = (carried if seen is None else carried & seen)[None]
    scores = jnp.einsum("hrd,dm->hrm", queries, c.points, precision=lax.Precision.HIGHEST)
    fixed = lax.stop_gradient(jnp.where(seen, scores, -jnp.inf))
    top = jnp.max(fixed, axis=-1, initial=-jnp.inf, keepdims=True)
    share = jnp.where((fixed == top) & seen, 1, 0).astype(scores.dtype)
    sums = jnp.einsum("hrm,cm->hrc", share, c.charges, precision=lax.Precision.HIGHEST)
    mass = sums[..., -1:]
    empty = mass == 0
    guarded = jnp.where(empty, 1, mass)
    mean = jnp.where(empty, 0, sums[..., :-1] / guarded)
    # Value of the maximum, derivative of the shared score: the second term is zero.
    slope = jnp.sum(lax.stop_gradient(share * weights[None, None] / guarded) * scores, axis=-1)
    largest = top[..., 0] + jnp.where(empty[..., 0], 0, slope - lax.stop_gradient(slope))
    return largest, mean
