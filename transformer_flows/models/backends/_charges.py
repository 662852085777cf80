"""What every backend shares: a measure and its values as charges on the points, and sums turned into results.

A charge is w·(values, 1): one thin product of the exponentials with the charges gives numerator and mass together.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ..masks import AbstractMask
from ..measure import Measure
from .exp2 import LN2


class Charges(eqx.Module):
    """Points and charges, one per column; the rows of `charges` are the weighted values, then the weights.

    `exists` is False at points that carry no mass (None: all do). `log_count` is what the log mass loses because
    uniform weights were left at 1.

    Columns because gradients take the layout of what they belong to, and XLA on a CPU accumulates (d, m) several times
    faster than (m, d).
    """

    points: Float[Array, "d m"]
    charges: Float[Array, "c m"]
    exists: Bool[Array, "m"] | None
    log_count: Float[Array, ""]


def charges(measure: Measure, values: Float[Array, "m v"], mask: AbstractMask | None, dtype: jnp.dtype) -> Charges:
    """The charges of a measure, in the dtype of the queries; zero at points that do not exist."""
    values = values.astype(dtype)
    exists = existing(measure, mask)
    m = values.shape[0]
    if measure.weights is None:
        weights = jnp.ones(m, dtype)
        count = jnp.asarray(m) if exists is None else jnp.maximum(jnp.sum(exists), 1)
        log_count = jnp.log(count.astype(dtype))
    else:
        weights = measure.weights.astype(dtype)
        log_count = jnp.zeros((), dtype)
    rows = weights[None] * jnp.concatenate([values.T, jnp.ones((1, m), dtype)])
    rows = rows if exists is None else jnp.where(exists[None], rows, 0)
    # Without the barrier XLA folds the transpose into the products and loses the layout.
    points = lax.optimization_barrier(measure.points.astype(dtype).T)
    return Charges(points, rows, exists, log_count)


def existing(measure: Measure, mask: AbstractMask | None) -> Bool[Array, "m"] | None:
    """Which points carry mass: those the measure has, and the mask says exist (None: all)."""
    exists = None if mask is None else mask.existing
    if measure.mask is None or exists is None:
        return measure.mask if exists is None else exists
    return measure.mask & exists


def visible(
    exists: Bool[Array, "m"] | None, mask: AbstractMask | None, query_index: Int[Array, "r"], m: int
) -> Bool[Array, "#r m"] | None:
    """Which points the queries see (None: all of them)."""
    if mask is None:
        return None if exists is None else exists[None]
    seen = mask(query_index[:, None], jnp.arange(m)[None])
    return seen if exists is None else seen & exists[None]


def radius(points: Float[Array, "d m"]) -> Float[Array, ""]:
    """Largest |y|, constant to every derivative."""
    return jnp.sqrt(jnp.max(jnp.sum(lax.stop_gradient(points) ** 2, axis=0), initial=0))


def results(
    sums: Float[Array, "h r c"], shift: Float[Array, "h r"], log_count: Float[Array, ""]
) -> tuple[Float[Array, "h r"], Float[Array, "h r v"]]:
    """Log mass and mean from Σ_j 2^{score - shift} charge_j. Where the mass is exactly 0: -inf and 0.

    The guarded mass keeps the derivatives of such a query at zero instead of NaN, and dividing by its size first
    keeps the squares and cubes of a tiny mass, which derivatives of a quotient hold, from overflowing.
    """
    empty = sums[..., -1] == 0
    size = lax.stop_gradient(jnp.where(empty, 1, jnp.abs(sums[..., -1])))
    sums = sums / size[..., None]
    mass = jnp.where(empty, 1, sums[..., -1])
    log_mass = jnp.log(mass) + (jnp.log(size) + LN2 * shift - log_count)
    mean = sums[..., :-1] / mass[..., None]
    return jnp.where(empty, -jnp.inf, log_mass), jnp.where(empty[..., None], 0, mean)
