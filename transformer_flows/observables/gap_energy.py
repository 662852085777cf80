"""The energy that measures synchronisation."""

import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike

from .._checks import concrete
from .._types import Scalar, ScalarLike, Tokens, as_float
from ..dynamics import AbstractFlow
from ._observable import AbstractObservable
from ._pairs import exists_in, squared_distances


class GapEnergy(AbstractObservable[AbstractFlow]):
    """E_β(μ) = ½ ∫∫ (e^β − e^{β⟨x,y⟩}) dμ dμ >= 0 of tokens on the sphere, a scalar; zero exactly at one cluster.

    The mean is over all pairs, a token with itself too. Accurate to rounding near a cluster; memory O(n), work O(n²).
    Raises `ValueError` for a β that is not positive and finite. Source: arXiv:2604.26898, its energy.
    """

    beta: Scalar

    def __init__(self, beta: ArrayLike):
        value = concrete(beta)
        if value is not None and not (value.ndim == 0 and 0 < value < jnp.inf):
            raise ValueError(f"beta must be one positive finite number; got {beta!r}.")
        self.beta = as_float(beta)

    def __call__(self, t: ScalarLike, x: Tokens, flow: AbstractFlow) -> Scalar:
        exists = exists_in(x, flow)
        beta = self.beta.astype(x.dtype)

        def gaps(token):
            # 1 − ⟨x, y⟩ is ½|x − y|²
            square = squared_distances(token[None], x)[0]
            return jnp.sum(jnp.where(exists, -jnp.expm1(-0.5 * beta * square), 0))

        rows = jax.lax.map(gaps, x, batch_size=256)
        mean = jnp.sum(jnp.where(exists, rows, 0)) / jnp.sum(exists).astype(x.dtype) ** 2
        return 0.5 * jnp.exp(beta) * mean
