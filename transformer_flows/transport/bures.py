"""W_2 between Gaussians, in closed form."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._checks import concrete, refuse_non_finite
from .._types import Scalar, as_float
from ..geometry._bures import covariance, squared_bures
from ._clouds import root


def bures_wasserstein(mean_x: Any, cov_x: Any, mean_y: Any, cov_y: Any) -> Scalar:
    """W_2 between N(mean_x, cov_x) and N(mean_y, cov_y): the root of `squared_bures_wasserstein`.

    Raises as that does. Its derivatives at equal Gaussians, where the root has none, are 0.
    """
    return root(squared_bures_wasserstein(mean_x, cov_x, mean_y, cov_y))


def squared_bures_wasserstein(mean_x: Any, cov_x: Any, mean_y: Any, cov_y: Any) -> Scalar:
    """W_2² = |m_x - m_y|² + tr(Σ_x + Σ_y - 2(Σ_x^{1/2} Σ_y Σ_x^{1/2})^{1/2}) for means `(d,)` and covariances `(d, d)`.

    Smooth at positive definite covariances, repeated eigenvalues included, with derivatives in every mode up to the
    third; use `vmap` for many. Covariances may be singular and off by rounding: asymmetry and negative eigenvalues up
    to √eps, relative to the largest, are removed.

    Covariances end where they are singular, so derivatives are one-sided there. If Σ_x^{1/2} Σ_y Σ_x^{1/2} has the
    rank of Σ_y, the gradient in Σ_x and the second derivatives are right. Otherwise W_2² falls like -√t, without a
    derivative, where Σ_x grows into a direction that Σ_y has and Σ_x lacks. The gradient leaves that part out: it is
    right in directions that keep the rank of Σ_x, as any motion of too few tokens to span R^d does; second
    derivatives are finite but not right.

    Raises `ValueError` for other shapes, values that are not finite, and covariances that are clearly asymmetric or
    indefinite. Source: Gelbrich, Math. Nachr. 1990; Takatsu, Osaka J. Math. 2011.
    """
    mean_x, cov_x, mean_y, cov_y = map(as_float, (mean_x, cov_x, mean_y, cov_y))
    cov_x, cov_y = covariance(cov_x, "cov_x"), covariance(cov_y, "cov_y")
    if cov_x.shape != cov_y.shape:
        raise ValueError(f"cov_x and cov_y must have one size; got {cov_x.shape} and {cov_y.shape}.")
    for name, mean in (("mean_x", mean_x), ("mean_y", mean_y)):
        if mean.shape != cov_x.shape[:1]:
            raise ValueError(f"{name} must have shape {cov_x.shape[:1]}, as its covariance says; got {mean.shape}.")
        if concrete(mean) is not None:
            refuse_non_finite(mean, name)
    return _squared(mean_x, cov_x, mean_y, cov_y)


@jax.jit
def _squared(mean_x: Array, cov_x: Array, mean_y: Array, cov_y: Array) -> Scalar:
    return jnp.sum((mean_x - mean_y) ** 2) + squared_bures(cov_x, cov_y)
