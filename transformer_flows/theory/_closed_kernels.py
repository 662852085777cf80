"""E[φ(g) φ(g')] and E[φ'(g) φ'(g')] in closed form, for Gaussians of variance v and correlation r."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, gammaln
from jaxtyping import Array, Float

Values = Float[Array, "..."]

_TERMS = 256


@jax.custom_jvp
def _same_sign(r: Values) -> Values:
    """(π − arccos r)/2π, the probability that both Gaussians are positive.

    Its slope is infinite at |r| = 1 and given as 0 there, which is right for a correlation that stays 1.
    """
    return (jnp.pi - jnp.arccos(jnp.clip(r, -1, 1))) / (2 * jnp.pi)


@_same_sign.defjvp
def _same_sign_jvp(primals, tangents):
    (r,), (dr,) = primals, tangents
    square = 1 - r * r
    inside = square > 0
    slope = 1 / (2 * jnp.pi * jnp.sqrt(jnp.where(inside, square, 1)))
    return _same_sign(r), jnp.where(inside, slope, 0) * dr


@jax.custom_jvp
def _arc_cosine(r: Values) -> Values:
    """E[relu(g) relu(g')] at variance 1 (Cho, Saul, NeurIPS 2009); its derivative is `_same_sign`."""
    r = jnp.clip(r, -1, 1)
    return (jnp.sqrt(1 - r * r) + (jnp.pi - jnp.arccos(r)) * r) / (2 * jnp.pi)


@_arc_cosine.defjvp
def _arc_cosine_jvp(primals, tangents):
    (r,), (dr,) = primals, tangents
    return _arc_cosine(r), _same_sign(r) * dr


def _arc_sine(v: Values, r: Values) -> Values:
    """E[erf(g) erf(g')] (Williams, NeurIPS 1997)."""
    return 2 / jnp.pi * jnp.arcsin(2 * v * r / (1 + 2 * v))


def _arc_sine_slope(v: Values, r: Values) -> Values:
    """E[erf'(g) erf'(g')] with erf'(x) = 2e^{−x²}/√π."""
    return 4 / jnp.pi / jnp.sqrt((1 + 2 * v) ** 2 - (2 * v * r) ** 2)


def _sin(v: Values, r: Values) -> Values:
    return (jnp.exp(-v * (1 - r)) - jnp.exp(-v * (1 + r))) / 2


def _cos(v: Values, r: Values) -> Values:
    return (jnp.exp(-v * (1 - r)) + jnp.exp(-v * (1 + r))) / 2


def _arcsine_powers() -> np.ndarray:
    """arcsin r = Σ r^n (n−1)!!/(n!! n) over odd n."""
    m = np.arange(_TERMS // 2)
    ratio = np.cumprod(np.concatenate([[1.0], (2 * m[1:] - 1) / (2 * m[1:])]))
    powers = np.zeros(_TERMS)
    powers[1::2] = ratio / (2 * m + 1)
    return powers


def _relu_powers(v: Values) -> Values:
    """`_arc_cosine` is 1/2π at 0, with slope (π/2 + arcsin r)/2π."""
    powers = np.zeros(_TERMS)
    powers[0], powers[1] = 1 / (2 * np.pi), 1 / 4
    powers[2:] = _arcsine_powers()[1:-1] / np.arange(2, _TERMS) / (2 * np.pi)
    return v * jnp.asarray(powers, v.dtype)


def _identity_powers(v: Values) -> Values:
    return v * jnp.zeros(_TERMS, v.dtype).at[1].set(1)


def _erf_powers(v: Values) -> Values:
    ratio = 2 * v / (1 + 2 * v)
    return 2 / jnp.pi * jnp.asarray(_arcsine_powers(), v.dtype) * ratio ** np.arange(_TERMS)


def _poisson(v: Values, parity: int) -> Values:
    """e^{−v} v^n/n! for n of one parity."""
    n = jnp.arange(_TERMS, dtype=v.dtype)
    return jnp.where(n % 2 == parity, jnp.exp(n * jnp.log(v) - v - gammaln(n + 1)), 0)


class _ClosedForm(NamedTuple):
    """A function, its expectation and that of its derivative at (v, r), and the powers of r in the first."""

    function: Callable
    whole: Callable
    slope: Callable
    powers: Callable


_CLOSED = (
    _ClosedForm(jax.nn.relu, lambda v, r: v * _arc_cosine(r), lambda v, r: _same_sign(r), _relu_powers),
    _ClosedForm(jax.nn.identity, lambda v, r: v * r, lambda v, r: jnp.ones_like(v * r), _identity_powers),
    _ClosedForm(erf, _arc_sine, _arc_sine_slope, _erf_powers),
    _ClosedForm(jnp.sin, _sin, _cos, lambda v: _poisson(v, 1)),
    _ClosedForm(jnp.cos, _cos, _sin, lambda v: _poisson(v, 0)),
)


def closed_form(activation: Callable) -> _ClosedForm | None:
    """None for an activation without one."""
    return next((form for form in _CLOSED if form.function is activation), None)
