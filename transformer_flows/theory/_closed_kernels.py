"""E[φ(g) φ(g')] and E[φ'(g) φ'(g')] in closed form, for Gaussians of variance v and correlation r."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import erf
from jaxtyping import Array, Float

Values = Float[Array, "..."]


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


# The function, its expectation, and that of its derivative.
_CLOSED = (
    (jax.nn.relu, lambda v, r: v * _arc_cosine(r), lambda v, r: _same_sign(r)),
    (jax.nn.identity, lambda v, r: v * r, lambda v, r: jnp.ones_like(v * r)),
    (erf, _arc_sine, _arc_sine_slope),
    (jnp.sin, _sin, _cos),
    (jnp.cos, _cos, _sin),
)


def closed_forms(activation: Callable) -> tuple[Callable, Callable] | None:
    """The two expectations as functions of (v, r); None for an activation without a closed form."""
    return next(((whole, slope) for function, whole, slope in _CLOSED if function is activation), None)
