"""E[φ(g) φ(g')] of correlated Gaussians for any φ, by Mehler's expansion in Hermite polynomials.

With φ(s z) = Σ a_n h_n(z), h_n orthonormal under the standard Gaussian, the expectation at correlation r is Σ a_n² r^n.
All terms are positive, so their sum against E φ², known by itself, says what a truncation leaves out.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Scalar

_TERMS = 256
# The trapezoid rule on a line converges exponentially for analytic functions: to rounding at this step, which resolves
# h_n up to the last term (its wavelength is 2π/√(4n)), and on this range, at whose ends the weight is e^{-98}.
_STEP = 0.04
_RANGE = 14.0


class MehlerSeries(eqx.Module):
    """Σ a_n² r^n with the squares `(n,)`, and a bound of its `error` for |r| <= 1. Called with correlations r."""

    squares: Float[Array, "n"]
    error: Scalar

    def __call__(self, correlation: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.polyval(self.squares[::-1], correlation, unroll=1)


def mehler_series(activation: Callable, variance: Scalar) -> MehlerSeries:
    """The expansion of an activation at Gaussians of the variance.

    What is left over is given to the last power, so that r = 1 is exact. The error is the sum of that and of what
    leaving out every other node changes, which is large for an activation with a kink.
    """
    nodes, functions, density = _hermite()
    dtype = variance.dtype
    values = activation(jnp.sqrt(variance) * jnp.asarray(nodes, dtype))
    project = lambda functions, values: jnp.matmul(jnp.asarray(functions, dtype), values, precision="highest") ** 2
    squares = project(functions, values)
    whole = jnp.sum(jnp.asarray(density, dtype) * values**2)
    left = whole - jnp.sum(squares)
    # half as many nodes resolve a quarter of the terms
    low = _TERMS // 4
    coarse = project(2 * functions[:low, ::2], values[::2])
    rule = jnp.sum(jnp.abs(coarse - squares[:low]))
    return MehlerSeries(squares.at[-1].add(jnp.maximum(left, 0)), jnp.abs(left) + rule)


@functools.cache
def _hermite() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes z `(g,)`; h_n(z) times the Gaussian weight of the node `(n, g)`; the weights `(g,)`."""
    count = round(_RANGE / _STEP)
    z = _STEP * np.arange(-count, count + 1)
    root = np.exp(-(z**2) / 4)
    h = np.zeros((_TERMS, z.size))
    h[0], h[1] = root, z * root  # the recurrence of h_n e^{-z²/4}, which is bounded
    for n in range(2, _TERMS):
        h[n] = (z * h[n - 1] - np.sqrt(n - 1) * h[n - 2]) / np.sqrt(n)
    weight = _STEP / np.sqrt(2 * np.pi)
    return z, weight * root * h, weight * root**2
