"""The exact law of the field at the tokens, wherever they are."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from ..._checks import concrete, refuse_other_count
from ..._types import Scalar, as_float
from ...theory import ActivationKernel
from ._realisation import AbstractFactor, AbstractRealisation, isotropic_drift, root


class Gram(AbstractRealisation):
    """The pivoted Cholesky factor of the Gram matrix k(⟨x_i, x_j⟩) of `n` tokens, W being `(n, d)`.

    The next pivot is the token whose variance is explained least, until what is left is below `tolerance` times k(1):
    coincident tokens cannot make it fail, and a token's row depends on itself and on the pivots alone, so equal tokens
    have equal rows. W has no meaning from one step to the next: the factor, which jumps where a pivot changes, has the
    right law in the Itô sense alone, and two runs of one key with other steps or tokens do not have one noise.

    Raises `ValueError` for another number of tokens than `n`, and a tolerance that is not between 0 and 1.
    """

    depends_smoothly: ClassVar[bool] = False
    n: int = eqx.field(static=True)
    tolerance: Scalar | None

    def __init__(self, n: int, *, tolerance: ArrayLike | None = None):
        refuse_other_count(n, "n", 1)
        value = concrete(tolerance)
        if value is not None and not (value.ndim == 0 and 0 < value < 1):
            raise ValueError(f"tolerance must be between 0 and 1; got {tolerance!r}.")
        self.n = n
        self.tolerance = None if tolerance is None else as_float(tolerance)

    def size(self, kernel: ActivationKernel) -> int:
        return self.n

    def factor(self, kernel):
        covariance = kernel.evaluated()
        variance = covariance(jnp.ones_like(kernel.weight))
        tolerance = self.n * jnp.finfo(variance.dtype).eps if self.tolerance is None else self.tolerance
        return _GramFactor(self.n, covariance, variance, tolerance * variance)

    def error(self, kernel):
        return self.factor(kernel).least


class _GramFactor(AbstractFactor):
    n: int = eqx.field(static=True)
    covariance: Callable
    variance: Scalar
    least: Scalar

    def __call__(self, x):
        n = x.shape[0]
        if n != self.n:
            raise ValueError(f"the factor is for {self.n} tokens; got {n}.")
        variance, least = self.variance.astype(x.dtype), self._least(x.dtype)

        def column(carry: tuple, step: Array) -> tuple[tuple, None]:
            factor, left = carry
            pivot = jnp.argmax(left)
            found = left[pivot] > least
            # 1 − ½|x − y|² is 1 for equal tokens, where ⟨x, x⟩ may be off by a rounding error
            rho = 1 - 0.5 * jnp.sum((x - x[pivot][None]) ** 2, axis=-1)
            explained = jnp.matmul(factor, factor[pivot], precision="highest")
            new = (self.covariance(rho).astype(x.dtype) - explained) / jnp.where(found, root(left[pivot]), 1)
            # a token of which nothing is left has been explained, but for the tolerance
            new = jnp.where(found & (left > 0), new, 0)
            left = jnp.where(left - new**2 > least, left - new**2, 0)
            return (factor.at[:, step].set(new), left), None

        start = jnp.zeros((n, n), x.dtype), jnp.full(n, variance)
        (factor, _), _ = jax.lax.scan(column, start, jnp.arange(n))
        return factor

    def ito_drift(self, x):
        return isotropic_drift(x, self.variance)

    def _least(self, dtype: jnp.dtype) -> Scalar:
        """The variance that counts as none; at least what the rounding of the tokens' own precision leaves."""
        rounding = self.n * jnp.finfo(dtype).eps * self.variance
        return jnp.maximum(self.least, rounding).astype(dtype)
