"""The covariance kernel of a wide random MLP on the sphere, and what follows from it alone (arXiv:2604.26898)."""

import warnings
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete, refuse_non_finite, refuse_other_count
from .._types import Scalar, as_float
from ._activation import check_activation, name_of, refuse_nan
from ._arguments import cosine
from ._closed_kernels import closed_form
from ._gegenbauer import gegenbauer_quadrature, harmonics_of_degree
from ._mehler import MehlerSeries, half_line, mehler_series

_TOLERANCE = 1e-4  # of k(1): below it, `error` is to be asked for
_MOST_POWERS = 24  # binomial coefficients of higher ones overflow in single precision


class ActivationKernel(eqx.Module):
    """k(ρ) = E[φ(g) φ(g')] + σ_c², (g, g') Gaussian of variance σ_u² + σ_b² and covariance σ_u²ρ + σ_b².

    The covariance, at two unit vectors of R^d with cosine ρ, of every coordinate of the random MLP
    G(y) = m^{-1/2} W φ(U y + b_U) + b_W, for any width m. `weight`, `hidden_bias` and `output_bias` are the variances
    σ_u² (of the entries of U), σ_b² and σ_c². Called with cosines of any shape; differentiable in cosines and
    variances.

    `activation` φ is continuous and acts on arrays entry by entry. ReLU, the identity, erf, sin and cos (those of JAX)
    have closed forms. Any other is expanded in Hermite polynomials, with no error but rounding where it is analytic and
    the variance moderate. Where it is steep (at a large variance) or has a kink at 0, that still holds of k(±1) and
    k'(±1), and so of the rates; in between `error` says how far k is off, as it does everywhere for kinks elsewhere. A
    warning says so where that is more than 1e-4 of k(1).

    Raises `ValueError` for variances that are negative or not finite, a weight of 0, d < 2, an activation that does not
    act entry by entry or is NaN somewhere, and cosines beyond ±1. Values under a transformation are not checked.
    Source: arXiv:2604.26898, its kernel k.
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
        check_activation(activation)
        self.activation = activation
        self.d = d
        self.weight = _variance(weight, "weight", zero=False)
        self.hidden_bias = _variance(hidden_bias, "hidden_bias")
        self.output_bias = _variance(output_bias, "output_bias")
        refuse_non_finite(self.variance, "weight + hidden_bias")
        if closed_form(activation) is None and concrete(self.variance) is not None:
            _check_expansion(activation, self.variance)

    @property
    def variance(self) -> Scalar:
        """σ_u² + σ_b², the variance of what the activation is applied to."""
        return self.weight + self.hidden_bias

    def __call__(self, rho: ArrayLike) -> Float[Array, "..."]:
        """k(ρ)."""
        return self.evaluated()(as_float(rho))

    def evaluated(self) -> "Covariance":
        """k as a function of ρ that holds the expansion of the activation: for many calls in turn."""
        series = None if closed_form(self.activation) else mehler_series(self.activation, self.variance)
        return Covariance(self, series)

    def derivative(self, rho: ArrayLike) -> Float[Array, "..."]:
        """k'(ρ) = σ_u² E[φ'(g) φ'(g')] (Price's theorem)."""
        closed = closed_form(self.activation)
        if closed is not None:
            return self.weight * closed.slope(self.variance, self.correlation(rho))
        return self.weight * mehler_series(self._slope, self.variance)(self.correlation(rho))

    @property
    def error(self) -> Scalar:
        """A bound of what the expansion leaves out of k, for every ρ; 0 for closed forms."""
        if closed_form(self.activation):
            return jnp.zeros_like(self.weight)
        return mehler_series(self.activation, self.variance).error

    @property
    def derivative_error(self) -> Scalar:
        """The same for k'. Large where φ' has jumps or the variance is beyond some hundreds: do not use k' then."""
        if closed_form(self.activation):
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
        return projections * jnp.asarray(harmonics_of_degree(self.d, degree), values.dtype)

    def maclaurin(self, degree: int) -> Float[Array, "{degree}+1"]:
        """Coefficients a_l >= 0 of k(ρ) = Σ_l a_l ρ^l up to `degree`, at most 24. The sum of all is k(1)."""
        refuse_other_count(degree, "degree", 0)
        if degree > _MOST_POWERS:
            raise ValueError(f"degree must be at most {_MOST_POWERS}; got {degree}.")
        closed = closed_form(self.activation)
        if closed is not None:
            squares = closed.powers(self.variance)
        else:
            squares = mehler_series(self.activation, self.variance).squares
        # the correlation is an average of ρ and 1: its n-th power is the binomial law of that many powers of ρ
        n, l = np.arange(squares.shape[0])[:, None], np.arange(degree + 1)[None]
        share = self.weight / self.variance
        law = jnp.asarray(scipy.special.comb(n, l), share.dtype) * share**l * (1 - share) ** np.maximum(n - l, 0)
        return jnp.matmul(squares, law, precision="highest").at[0].add(self.output_bias)

    def _slope(self, z: Array) -> Array:
        """φ'. A jump of φ does not show in it."""
        return jax.jvp(self.activation, (z,), (jnp.ones_like(z),))[1]

    def correlation(self, rho: ArrayLike) -> Float[Array, "..."]:
        """Of the two arguments of the activation. Raises `ValueError` for a ρ that is no cosine."""
        rho = cosine(rho, "rho")
        # an average of ρ and 1, which is 1 to the last digit where ρ is
        share = self.weight / self.variance
        return 1 - share * (1 - rho)


class Covariance(eqx.Module):
    """k of an `ActivationKernel`, with its expansion; called with cosines ρ of any shape."""

    kernel: ActivationKernel
    series: MehlerSeries | None

    def __call__(self, rho: Float[Array, "..."]) -> Float[Array, "..."]:
        kernel, correlation = self.kernel, self.kernel.correlation(rho)
        closed = closed_form(kernel.activation)
        if closed is not None:
            return closed.whole(kernel.variance, correlation) + kernel.output_bias
        assert self.series is not None
        return self.series(correlation) + kernel.output_bias


def _variance(x: ArrayLike, name: str, *, zero: bool = True) -> Scalar:
    x = as_float(x)
    if x.ndim:
        raise ValueError(f"{name} must be one number, a variance; got shape {x.shape}.")
    refuse_non_finite(x, name)
    value = concrete(x)
    if value is not None and (value < 0 or (value == 0 and not zero)):
        raise ValueError(f"{name} is a variance and must be {'at least' if zero else 'more than'} 0; got {value}.")
    return x


def _check_expansion(activation: Callable, variance: Scalar) -> None:
    """Refuse NaN at the points of the expansion, and warn where it is far off, whose numbers are known."""
    with jax.ensure_compile_time_eval():
        points = half_line(variance)
        refuse_nan(activation, jnp.concatenate([points, -points]))
        series = mehler_series(activation, variance)
        error, whole = concrete(series.error), concrete(series(jnp.ones_like(variance)))
    if error is None or whole is None or error <= _TOLERANCE * whole:
        return
    of = f"the kernel of {name_of(activation)} at the variance {concrete(variance):g}"
    if np.isfinite(error):
        warnings.warn(f"{of} is known to {error / whole:.1g} of k(1) only; see error, derivative_error.", stacklevel=3)
    else:
        warnings.warn(f"{of} overflows.", stacklevel=3)
