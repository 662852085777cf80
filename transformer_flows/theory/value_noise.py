"""Two tokens under softmax attention whose value matrix is noise (arXiv:2601.21942): do they meet, or their antipodes?

Score βI, value σ dW with a d × d matrix of independent Brownian motions, common to both; in the sense of Itô.
Exponents are those of a distance, per unit of depth (dimensionless). A negative strength, and d < 2, raise
`ValueError`; β may have either sign.
"""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import refuse_outside
from .._types import as_float
from ._arguments import not_negative


def value_noise_exponent_near_coincidence(strength: ArrayLike, d: ArrayLike) -> Float[Array, "..."]:
    """−½(d−1)σ², the exponent of |x − y| near x = y: close tokens always meet."""
    return -0.5 * (_dimension(d) - 1) * not_negative(strength, "strength") ** 2


def value_noise_exponent_near_antipodes(strength: ArrayLike, beta: ArrayLike, d: ArrayLike) -> Float[Array, "..."]:
    """σ²[(d−1)/(2 cosh²β) − 1], the exponent of |x + y| near x = −y.

    Antipodal pairs attract where it is negative, that is for cosh²β > (d−1)/2: always for d <= 3, but for β = 0, d = 3.
    """
    sech = 1 / jnp.cosh(as_float(beta))
    return not_negative(strength, "strength") ** 2 * (0.5 * (_dimension(d) - 1) * sech**2 - 1)


def _dimension(d: ArrayLike) -> Array:
    refuse_outside(d, "d", 2.0)
    return jnp.asarray(d)
