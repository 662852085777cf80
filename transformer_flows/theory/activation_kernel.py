"""The covariance kernel of a wide random MLP on the sphere, and what follows from it alone (arXiv:2604.26898)."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete, refuse_non_finite, refuse_other_count
from .._types import Scalar, as_float
from ._closed_kernels import closed_forms
from ._gegenbauer import gegenbauer_quadrature, multiplicities
from ._mehler import mehler_series


class ActivationKernel(eqx.Module):
    """k(ρ) = E[φ(g) φ(g')] + σ_c², (g, g') Gaussian of variance σ_u² + σ_b² and covariance σ_u²ρ + σ_b².

    The covariance, at two unit vectors of R^d with cosine ρ, of every coordinate of the random MLP
    G(y) = m^{-1/2} W φ(U y + b_U) + b_W, for any width m. `weight`, `hidden_bias` and `output_bias` are the variances
    σ_u² (of the entries of U), σ_b² and σ_c². Called with cosines of any shape; differentiable in cosines and
    variances.

    `activation` φ is continuous and acts on arrays entry by entry. ReLU, the identity, erf, sin and cos (those of JAX)
    have closed forms; any other is expanded in Hermite polynomials. Raises `ValueError` for variances that are negative
    or not finite, a weight of 0, d < 2, and an activation that changes shapes. Source: arXiv:2604.26898, its kernel k.
    """

    activation: Callable
    d: int = eqx.field(static=True)
    weight: Scalar
    hidden_bias: Scalar
    output_bias: Scalar

    def __init__(
        self,
        activation: Callable,
        d: int,
        weight: ArrayLike,
        hidden_bias: ArrayLike = 0.0,
        output_bias: ArrayLike = 0.0,
    ):
        refuse_other_count(d, "d", 2)
        _check_activation(activation)
        self.activation = activation
        self.d = d
        self.weight = _variance(weight, "weight", zero=False)
        self.hidden_bias = _variance(hidden_bias, "hidden_bias")
        self.output_bias = _variance(output_bias, "output_bias")

    @property
    def variance(self) -> Scalar:
        """σ_u² + σ_b², the variance of what the activation is applied to."""
        return self.weight + self.hidden_bias

    def __call__(self, rho: ArrayLike) -> Float[Array, "..."]:
        """k(ρ)."""
        closed = closed_forms(self.activation)
        if closed is not None:
            return closed[0](self.variance, self._correlation(rho)) + self.output_bias
        return mehler_series(self.activation, self.variance)(self._correlation(rho)) + self.output_bias

    def derivative(self, rho: ArrayLike) -> Float[Array, "..."]:
        """k'(ρ) = σ_u² E[φ'(g) φ'(g')] (Price's theorem)."""
        closed = closed_forms(self.activation)
        if closed is not None:
            return self.weight * closed[1](self.variance, self._correlation(rho))
        return self.weight * mehler_series(self._slope, self.variance)(self._correlation(rho))

    @property
    def error(self) -> Scalar:
        """A bound of what the expansion leaves out of k, for every ρ; 0 for closed forms."""
        if closed_forms(self.activation) is not None:
            return jnp.zeros_like(self.weight)
        return mehler_series(self.activation, self.variance).error

    @property
    def derivative_error(self) -> Scalar:
        """The same for k'. Large where φ' has jumps or the variance is beyond some hundreds: do not use k' then."""
        if closed_forms(self.activation) is not None:
            return jnp.zeros_like(self.weight)
        return self.weight * mehler_series(self._slope, self.variance).error

    def gegenbauer(self, degree: int) -> Float[Array, "{degree}+1"]:
        """Coefficients c_l >= 0 of k(ρ) = Σ_l c_l P_l(ρ) up to `degree`, P_l(1) = 1: the variance in each degree.

        P_l are the Gegenbauer polynomials of S^{d-1}: those of Legendre for d = 3, of Chebyshev for d = 2. The sum of
        all c_l is k(1). c_l is known to the rounding of k(1) times the number of harmonics of degree l, which is large
        for large d and l.
        """
        refuse_other_count(degree, "degree", 0)
        nodes, weights, polynomials = gegenbauer_quadrature(self.d, degree)
        values = self(jnp.asarray(nodes, self.weight.dtype))
        projections = jnp.matmul(jnp.asarray(polynomials * weights, values.dtype), values, precision="highest")
        return projections * jnp.asarray(multiplicities(self.d, degree), values.dtype)

    def _slope(self, z: Array) -> Array:
        """φ'. A jump of φ does not show in it."""
        return jax.jvp(self.activation, (z,), (jnp.ones_like(z),))[1]

    def _correlation(self, rho: ArrayLike) -> Float[Array, "..."]:
        """Of the two arguments of the activation."""
        rho = as_float(rho)
        # an average of ρ and 1, which is 1 to the last digit where ρ is
        share = self.weight / self.variance
        return 1 - share * (1 - rho)


def _variance(x: ArrayLike, name: str, *, zero: bool = True) -> Scalar:
    x = as_float(x)
    if x.ndim:
        raise ValueError(f"{name} must be one number, a variance; got shape {x.shape}.")
    refuse_non_finite(x, name)
    value = concrete(x)
    if value is not None and (value < 0 or (value == 0 and not zero)):
        raise ValueError(f"{name} is a variance and must be {'at least' if zero else 'more than'} 0; got {value}.")
    return x


def _check_activation(activation: Callable) -> None:
    if not callable(activation):
        raise ValueError(f"activation must be a function of arrays such as jax.numpy.tanh; got {activation!r}.")
    like = jax.ShapeDtypeStruct((2, 3), jnp.result_type(float))
    out = eqx.filter_eval_shape(activation, like)
    if not (isinstance(out, jax.ShapeDtypeStruct) and out.shape == like.shape):
        raise ValueError(
            f"activation must act entry by entry; it made {getattr(out, 'shape', type(out).__name__)} of shape (2, 3)."
        )
