"""Gaussian measures: a mean with a factor of the covariance, so that no motion of it can lose symmetry or sign."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from .._checks import refuse_non_finite
from .._types import Key, Tokens, as_float
from ._bures import covariance, inverse, kept, product
from ._manifold import AbstractSpace
from ._size import size

Matrix = Float[Array, "d d"]


class Gaussian(eqx.Module):
    """N(mean, cov) in R^d with cov = factor factorᵀ: `mean` `(d,)`, `factor` `(d, r)`.

    `Gaussian(mean, cov)` factors a covariance `(d, d)`, which may be singular, and asymmetric or indefinite by rounding
    (√eps relative to its largest eigenvalue): eigenvalues within d·eps of 0 are 0, and their columns of the factor,
    the last ones, too. So the factor is `(d, d)` whatever the rank. `Gaussian(mean, factor=L)` takes any `(d, r)`.
    Derivatives with respect to cov are right up to the third, at repeated eigenvalues too; at a singular cov in
    directions that keep its rank.

    The states of a solution have a leading axis of times on everything. Raises `ValueError` for shapes that do not
    match, values that are not finite, and a matrix that is clearly asymmetric or indefinite.
    """

    mean: Float[Array, "*batch d"]
    factor: Float[Array, "*batch d r"]

    def __init__(self, mean: Any, cov: Any = None, *, factor: Any = None):
        if (cov is None) == (factor is None):
            raise ValueError("a Gaussian is given by its mean and either cov or factor; got both or neither.")
        mean = as_float(mean)
        spread = as_float(cov if factor is None else factor)
        dtype = jnp.result_type(mean, spread)
        mean, spread = mean.astype(dtype), spread.astype(dtype)
        name = "cov" if factor is None else "factor"
        if mean.ndim != 1 or spread.ndim != 2 or spread.shape[0] != mean.shape[0]:
            wanted = "(d, d)" if factor is None else "(d, r)"
            raise ValueError(f"mean must have shape (d,) and {name} {wanted}; got {mean.shape} and {spread.shape}.")
        refuse_non_finite(mean, "mean")
        refuse_non_finite(spread, name)
        self.mean = mean
        self.factor = spread if factor is not None else factor_of(covariance(spread, "cov"))

    @staticmethod
    def of_tokens(x: Tokens) -> "Gaussian":
        """The Gaussian with the mean and the covariance (divided by n) of tokens `(n, d)`."""
        x = as_float(x)
        if x.ndim != 2 or x.shape[0] == 0:
            raise ValueError(f"x must be tokens of shape (n, d) with n >= 1; got {x.shape}.")
        centred = x - x.mean(axis=0, keepdims=True)
        return Gaussian(x.mean(axis=0), product(centred.T, centred) / x.shape[0])

    @property
    def cov(self) -> Float[Array, "*batch d d"]:
        """The covariance: symmetric to the last bit, and of the rank of the factor up to rounding."""
        cov = jnp.matmul(self.factor, jnp.swapaxes(self.factor, -1, -2), precision="highest")
        return (cov + jnp.swapaxes(cov, -1, -2)) / 2

    @property
    def rank(self) -> Int[Array, "*batch"]:
        """The number of singular values of the factor above rounding."""
        values = jnp.linalg.svd(self.factor, compute_uv=False)
        least = max(self.factor.shape[-2:]) * jnp.finfo(values.dtype).eps * values.max(axis=-1, keepdims=True)
        return (values > least).sum(axis=-1)

    def sample(self, key: Key, n: int) -> Tokens:
        """`n` independent tokens `(n, d)`."""
        normal = jr.normal(key, (size(n, "n", 1), self.factor.shape[-1]), self.factor.dtype)
        return self.mean[None] + product(normal, self.factor.T)

    def replace(self, mean: Array, factor: Array) -> "Gaussian":
        """These arrays in the place of its own, without a check: how a velocity of a Gaussian is written."""
        return eqx.tree_at(lambda g: (g.mean, g.factor), self, (mean, factor))


class Gaussians(AbstractSpace):
    """All Gaussians in R^d, degenerate ones too. Raises `ValueError` if `d` is not a positive integer."""

    d: int = eqx.field(static=True)

    def __init__(self, d: int):
        self.d = size(d, "d", 1)

    def retract(self, x: Gaussian) -> Gaussian:
        """`x` itself: every factor is one of a covariance."""
        return x


@functools.partial(jax.jit, inline=True)
def factor_of(cov: Matrix) -> Matrix:
    """L with L Lᵀ = cov, its columns orthogonal and falling in length, those of zero eigenvalues zero.

    dL = (1 - P/2) dcov L⁺ᵀ with the projection P on the range: ½ dcov L⁺ᵀ at full rank. Eigenvectors are constant to
    derivatives, which would be NaN at repeated eigenvalues; every step below makes one more derivative right.
    """
    held = jax.lax.stop_gradient(cov)
    eigenvalues, q = jnp.linalg.eigh(held)
    seen = kept(eigenvalues)
    length = jnp.sqrt(jnp.where(seen, eigenvalues, 0))
    start = (q * length[None])[:, ::-1]
    dual = (q * inverse(length, seen)[None])[:, ::-1]
    left = jnp.eye(cov.shape[0], dtype=cov.dtype) - product(start, dual.T) / 2
    remainder = held - product(start, start.T)
    factor = start
    for _ in range(3):
        factor += product(left, cov - product(factor, factor.T) - remainder, dual)
    return factor
