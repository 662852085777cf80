"""E[φ(g) φ(g')] of correlated Gaussians for any φ, by Mehler's expansion in Hermite polynomials.

With φ(s z) = Σ a_n h_n(z), h_n orthonormal under the standard Gaussian, the expectation at correlation r is Σ a_n² r^n.
All terms are positive, so their sum against E φ², known by itself, says what a truncation leaves out.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from .._types import Scalar

_TERMS = 256
# Nodes z = c log(1 + e^u) at regular u on each half line. Those far out are regular, by c·step, which resolves h_n up
# to the last term (its wavelength is 2π/√(4n)); those near 0 lie at regular logarithms, so that a function that is
# steep there is resolved however steep, and a kink or a jump at 0 is no node's concern. The trapezoid rule in u
# converges exponentially for functions that are analytic elsewhere: to rounding at this step.
_STEP = 0.1
_SCALE = 0.3
_LEAST, _MOST = 1e-17, 13.5  # between them all but 1e-17 of the Gaussian's mass, and of z e^{-z²/4}


class MehlerSeries(eqx.Module):
    """Σ a_n² r^n with the squares `(n,)`, and a bound of its `error` for |r| <= 1. Called with correlations r."""

    squares: Float[Array, "n"]
    error: Scalar

    def __call__(self, correlation: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.polyval(self.squares[::-1], correlation, unroll=1)


def mehler_series(activation: Callable, variance: Scalar) -> MehlerSeries:
    """The expansion of an activation at Gaussians of the variance.

    What is left over is given to the last even and the last odd power, so that r = ±1 are exact. The error is the sum
    of that and of what leaving out every other node changes, which is large for an activation with a kink that is not
    at 0.
    """
    _, functions, density = _hermite()
    points = half_line(variance)
    right, left = activation(points), activation(-points)
    # the even and the odd part, which have the even and the odd terms: twice the part at all nodes of one half line
    parts = jnp.stack([right + left, right - left])
    squares, wholes = _squares(parts, functions, density)
    beyond = wholes - jnp.sum(squares, axis=1)
    # half as many nodes resolve a quarter of the terms
    low = _TERMS // 8
    coarse, coarse_wholes = _squares(parts[:, ::2], 2 * functions[:, :low, ::2], 2 * density[::2])
    rule = jnp.sum(jnp.abs(coarse - squares[:, :low])) + jnp.sum(jnp.abs(coarse_wholes - wholes))
    squares = squares.at[:, -1].add(jnp.maximum(beyond, 0))
    return MehlerSeries(squares.T.reshape(-1), jnp.sum(jnp.abs(beyond)) + rule)


def half_line(variance: Scalar) -> Float[Array, "g"]:
    """The positive points at which an activation is evaluated."""
    return jnp.sqrt(variance) * jnp.asarray(_hermite()[0], variance.dtype)


def _squares(
    parts: Float[Array, "2 g"], functions: np.ndarray, density: np.ndarray
) -> tuple[Float[Array, "2 n"], Float[Array, "2"]]:
    """a_n² of the even and the odd part, and the sums over all n, E φ² of each part."""
    terms = jnp.einsum("png,pg->pn", jnp.asarray(functions, parts.dtype), parts, precision="highest")
    return terms**2, jnp.sum(jnp.asarray(density, parts.dtype)[None] * parts**2, axis=1) / 2


@functools.cache
def _hermite() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes z > 0 `(g,)`; h_n(z) times the Gaussian weight of the node, even and odd n `(2, n/2, g)`; the weights."""
    first, last = np.log(np.expm1(np.array([_LEAST, _MOST]) / _SCALE))
    u = first + _STEP * np.arange(int((last - first) / _STEP))
    z = _SCALE * np.logaddexp(0, u)
    root = np.exp(-(z**2) / 4)
    h = np.zeros((_TERMS, z.size))
    h[0], h[1] = root, z * root  # the recurrence of h_n e^{-z²/4}, which is bounded
    for n in range(2, _TERMS):
        h[n] = (z * h[n - 1] - np.sqrt(n - 1) * h[n - 2]) / np.sqrt(n)
    weight = _STEP * _SCALE * scipy.special.expit(u) / np.sqrt(2 * np.pi) * root
    functions = weight * h
    return z, np.stack([functions[::2], functions[1::2]]), weight * root
