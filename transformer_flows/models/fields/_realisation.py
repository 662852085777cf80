"""The contract of factors of a covariance on the sphere."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._types import Scalar, Tokens
from ...theory import ActivationKernel


class AbstractFactor(eqx.Module):
    """A factor F of a covariance, F Fᵀ = k(⟨x_i, x_j⟩), with everything in it computed that no token changes."""

    @abstractmethod
    def __call__(self, x: Tokens) -> Float[Array, "n k"]:
        """One row for every token `(n, d)`; equal tokens have equal rows."""

    @abstractmethod
    def ito_drift(self, x: Tokens) -> Tokens:
        """What P_x ∘ dB is more than P_x dB, per unit of time `(n, d)`."""


class AbstractRealisation(eqx.Module):
    """How the covariance of a Gaussian field is factorised, up to a stated error.

    `depends_smoothly`: whether the factor is a smooth function of the tokens, so that F(x) W at a fixed W is one too,
    and its Stratonovich integral has the law of the field. Where it is not, only the Itô integral has it.
    """

    depends_smoothly: eqx.AbstractClassVar[bool]

    @abstractmethod
    def size(self, kernel: ActivationKernel) -> int:
        """The number of columns. Raises `ValueError` for a kernel of a sphere that the realisation does not have."""

    @abstractmethod
    def factor(self, kernel: ActivationKernel) -> AbstractFactor:
        """The factor, differentiable in the kernel's scales."""

    @abstractmethod
    def error(self, kernel: ActivationKernel) -> Scalar:
        """How far F Fᵀ is from the kernel: at most, or where the factor is random, the standard deviation."""


class AbstractIsotropicModes(AbstractRealisation):
    """Fixed functions of the token, grouped by degree: F Fᵀ is the kernel's own series, cut after the last degree."""

    depends_smoothly: ClassVar[bool] = True

    @abstractmethod
    def coefficients(self, kernel: ActivationKernel) -> Float[Array, "l"]:
        """The variance in each degree, none of them negative; together k(1) less what is cut off."""

    def error(self, kernel):
        return jnp.maximum(kernel(1.0) - jnp.sum(self.coefficients(kernel)), 0)


def isotropic_drift(x: Tokens, variance: Float[Array, "..."]) -> Tokens:
    """−½(d−1)k(1)x, the variance k(1) being one for all tokens, or `(n, 1)`."""
    return (-0.5 * (x.shape[-1] - 1) * variance).astype(x.dtype) * x


def root(square: Float[Array, "..."]) -> Float[Array, "..."]:
    """√ of numbers that rounding may have made negative; 0 there, with derivative 0."""
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)
