"""The exponentials e^{score - shift} of some queries against all points, and their product with the charges.

Queries arrive multiplied by log2 e, so that scores are in base 2 throughout.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from .exp2 import LOG2E, exp2

HIGHEST = lax.Precision.HIGHEST
# Largest score for which its bound |q|·max|y| is the shift: a point at minus the bound still weighs e^{-2·30} = 1e-26.
_BOUND_SINGLE = 30 * LOG2E
_BOUND_DOUBLE = 300 * LOG2E
# Up to this many dimensions scores are sums over the coordinates.
_FEW = 4
# Up to this many charges the mass is one more column of the product; beyond, its own sum spares the odd column.
_THIN = 8


def shifted(
    queries: Float[Array, "r d"],
    points: Float[Array, "d m"],
    seen: Bool[Array, "#r m"] | None,
    radius: Float[Array, ""],
    shift: Float[Array, "r"] | None = None,
) -> tuple[Float[Array, "r m"], Float[Array, "r"]]:
    """2^{score - shift}, zero where not seen, and the shift, which is constant to every derivative.

    The shift is the bound |q|·`radius` of the scores while that is small, and else the row maximum, subtracted before
    anything else happens to the scores. `shift` given: that one.
    """
    scores = _scores(queries, points)
    scores = scores if seen is None else jnp.where(seen, scores, -jnp.inf)
    if shift is None:
        fixed_queries, fixed = lax.stop_gradient((queries, scores))
        bound = jnp.sqrt(jnp.sum(fixed_queries**2, axis=-1)) * radius
        small = jnp.max(bound, initial=0) <= (_BOUND_SINGLE if scores.dtype == jnp.float32 else _BOUND_DOUBLE)
        shift = jnp.asarray(lax.cond(small, lambda b, _: b, lambda _, s: row_maximum(s), bound, fixed))
    return exp2(scores - shift[:, None]), shift


@jax.custom_jvp
def _scores(queries: Float[Array, "r d"], points: Float[Array, "d m"]) -> Float[Array, "r m"]:
    """⟨q, y⟩ for every pair. In few dimensions a sum of products, which is computed together with its exponential."""
    d = points.shape[0]
    if 0 < d <= _FEW:
        return functools.reduce(jnp.add, (queries[:, k, None] * points[None, k] for k in range(d)))
    return jnp.matmul(queries, points, precision=HIGHEST)


@_scores.defjvp
def _scores_jvp(primals, tangents):
    """Matrix products: their transposes are too, where that of a sum would be slow reductions."""
    (queries, points), (d_queries, d_points) = primals, tangents
    product = functools.partial(jnp.matmul, precision=HIGHEST)
    return _scores(queries, points), product(d_queries, points) + product(queries, d_points)


def row_maximum(scores: Float[Array, "r m"]) -> Float[Array, "r"]:
    """Largest score of each row; 0 for a row of -inf, so that subtracting it leaves -inf."""
    top = jnp.max(scores, axis=-1, initial=-jnp.inf)
    return jnp.where(top == -jnp.inf, 0, top)


def weigh(tilt: Float[Array, "r m"], charges: Float[Array, "c m"]) -> Float[Array, "r c"]:
    """Σ_j tilt_j charge_j. The mass, the last charge, comes last."""
    c = charges.shape[0]
    if c <= _THIN:
        # a product with four or eight columns is up to twice as fast on a CPU as one with fewer of them
        charges = jnp.pad(charges, ((0, -c % 4), (0, 0)))
        return jnp.matmul(tilt, charges.T, precision=HIGHEST)[:, :c]
    values = jnp.matmul(tilt, charges[:-1].T, precision=HIGHEST)
    return jnp.concatenate([values, jnp.sum(tilt * charges[-1:], axis=-1, keepdims=True)], axis=-1)
