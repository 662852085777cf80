"""Smooth functions of an angle θ, written in the squared angle or the squared chord q = 4 sin²(θ/2).

Each is analytic at 0 but its formula divides 0 by 0 there. A Taylor sum below `SMALL` makes the value and every
derivative right; above it the formula loses no digits.
"""

from collections.abc import Sequence
from math import comb, factorial

import jax.numpy as jnp
from jaxtyping import Array, Float

SMALL = 0.02
_TERMS = 8  # the slowest of these series falls by q/4 per term: 4e-19 at SMALL
_COS = [(-1) ** n / factorial(2 * n) for n in range(_TERMS)]
_SINC = [(-1) ** n / factorial(2 * n + 1) for n in range(_TERMS)]
_SQUARED_ANGLE = [2 / ((n + 1) ** 2 * comb(2 * n + 2, n + 1)) for n in range(_TERMS)]
_ANGLE_OVER_SINE = [factorial(n) ** 2 / factorial(2 * n + 1) for n in range(_TERMS)]

Angles = Float[Array, "*batch"]


def cos_and_sinc(square: Angles) -> tuple[Angles, Angles]:
    """cos θ and sin θ/θ of the squared angle θ²."""
    small = square < SMALL
    near = jnp.where(small, square, 0)
    theta = jnp.sqrt(jnp.where(small, 1, square))
    cos = jnp.where(small, _polynomial(_COS, near), jnp.cos(theta))
    sinc = jnp.where(small, _polynomial(_SINC, near), jnp.sin(theta) / theta)
    return cos, sinc


def squared_angle(chord2: Angles, angle: Angles) -> Angles:
    """θ² of the squared chord; `angle` is θ, used where the chord is not small."""
    small = chord2 < SMALL
    near = jnp.where(small, chord2, 0)
    far = jnp.where(small, 1, angle)
    return jnp.where(small, near * _polynomial(_SQUARED_ANGLE, near), far * far)


def angle_over_sine(chord2: Angles, angle: Angles, sine: Angles) -> Angles:
    """θ/sin θ of the squared chord; `angle` and `sine` are used where the chord is not small. 0 where `sine` is 0."""
    small = chord2 < SMALL
    near = jnp.where(small, chord2, 0)
    regular = ~small & (sine > 0)
    far = jnp.where(regular, angle, 0) / jnp.where(regular, sine, 1)
    return jnp.where(small, _polynomial(_ANGLE_OVER_SINE, near), far)


def _polynomial(coefficients: Sequence[float], x: Angles) -> Angles:
    total = jnp.zeros_like(x)
    for c in reversed(coefficients):
        total = total * x + c
    return total
