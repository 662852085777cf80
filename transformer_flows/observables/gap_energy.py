"""The energy that measures synchronisation."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from .._checks import concrete
from .._types import Scalar, ScalarLike, Tokens, as_float
from ..dynamics import AbstractFlow
from ..models import times_exp
from ._observable import AbstractObservable
from ._pairs import exists_in, squared_distances


class GapEnergy(AbstractObservable[AbstractFlow]):
    """E_β(μ) = ½ ∫∫ (e^β − e^{β⟨x,y⟩}) dμ dμ >= 0 of tokens on the sphere, a scalar; zero exactly at one cluster.

    The mean is over all pairs, a token with itself too. Accurate to rounding near a cluster; memory O(n), work O(n²).
    Away from a cluster it is about e^β/2, which overflows from β = 89 on in float32, 710 in float64: `LogGapEnergy` is
    finite there. Raises `ValueError` for a β that is not positive, or overflows in its own precision. Source:
    arXiv:2604.26898, its energy.
    """

    beta: Scalar

    def __init__(self, beta: ArrayLike):
        self.beta = _positive(beta)
        most = np.log(jnp.finfo(self.beta.dtype).max)
        value = concrete(self.beta)
        if value is not None and value > most:
            raise ValueError(
                f"beta must be below {most:.0f}, where e^beta overflows; got {value:g}. Take LogGapEnergy."
            )

    def __call__(self, t: ScalarLike, x: Tokens, flow: AbstractFlow) -> Scalar:
        beta = self.beta.astype(x.dtype)
        return times_exp(_relative(beta, x, flow), beta)


class LogGapEnergy(AbstractObservable[AbstractFlow]):
    """Logarithm of the `GapEnergy`, for any β, a scalar; −∞ at one cluster. Raises `ValueError` for a β <= 0 or ∞."""

    beta: Scalar

    def __init__(self, beta: ArrayLike):
        self.beta = _positive(beta)

    def __call__(self, t: ScalarLike, x: Tokens, flow: AbstractFlow) -> Scalar:
        beta = self.beta.astype(x.dtype)
        return beta + jnp.log(_relative(beta, x, flow))


def _positive(beta: ArrayLike) -> Scalar:
    value = concrete(beta)
    if value is not None and not (value.ndim == 0 and 0 < value < jnp.inf):
        raise ValueError(f"beta must be one positive finite number; got {beta!r}.")
    return as_float(beta)


def _relative(beta: Scalar, x: Tokens, flow: AbstractFlow) -> Scalar:
    """E_β e^{−β} = ½ ∫∫ (1 − e^{−β|x−y|²/2}) dμ dμ."""
    exists = exists_in(x, flow)

    def gaps(token):
        # 1 − ⟨x, y⟩ is ½|x − y|²
        square = squared_distances(token[None], x)[0]
        return jnp.sum(jnp.where(exists, -jnp.expm1(-0.5 * beta * square), 0))

    rows = jax.lax.map(gaps, x, batch_size=256)
    return 0.5 * jnp.sum(jnp.where(exists, rows, 0)) / jnp.sum(exists).astype(x.dtype) ** 2
