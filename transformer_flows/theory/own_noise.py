"""Synchronisation against noise of every token's own, in the mean field (score βI, value I, attraction).

dx_i = P_{x_i} m_i dt + √(2/κ) P_{x_i} ∘ dW_i on S^{d−1}: at β = 0 the attention m_i is the mean token, and d = 2 is the
noisy Kuramoto model. Functions take numbers or arrays and broadcast. Order parameters are those of infinitely many
tokens; with n of them they fluctuate by 1/√n.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete
from .._types import as_float
from .mean_field import growth_rate


def noisy_growth_rate(kappa: ArrayLike, beta: ArrayLike, l: ArrayLike, d: ArrayLike) -> Float[Array, "..."]:
    """Growth rate of degree `l` of the uniform density: `growth_rate` − l(l+d−2)/κ, the Laplacian's.

    At β = 0 it is (d−1)(1/d − 1/κ) for l = 1 and negative for all others: the uniform state is unstable from κ = d on.
    """
    l, d, kappa = jnp.asarray(l), jnp.asarray(d), _positive(kappa)
    return growth_rate(beta, l, d) - l * (l + d - 2) / kappa


def stationary_order(kappa: ArrayLike, d: ArrayLike) -> Float[Array, "..."]:
    """|∫ x dμ| at β = 0 of the stable stationary state: 0 for κ <= d, and beyond it the root r > 0 of r = A_d(κr).

    A mean m of length r lets the density settle at e^{κ⟨x, m⟩} (von Mises and Fisher), whose mean has the length
    A_d(κr), A_d(s) = I_{d/2}(s)/I_{d/2−1}(s). As A_d(s)/s falls from 1/d to 0, there is at most one such root. By
    bisection, differentiable in κ.
    """
    kappa, d = jnp.broadcast_arrays(_positive(kappa), jnp.asarray(d))

    def excess(r: Array) -> Array:
        """A_d(κr)/(κr) − 1/κ, in which growth_rate is (d−1)A_d(s)/s for l = 1: the same Bessel functions."""
        return growth_rate(kappa * r, 1, d) / (d - 1) - 1 / kappa

    def halve(_, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        below = excess(middle) > 0
        return jnp.where(below, middle, ends[0]), jnp.where(below, ends[1], middle)

    start = jnp.zeros_like(kappa), jnp.ones_like(kappa)
    steps = 2 + jnp.finfo(kappa.dtype).nmant
    root = jax.lax.stop_gradient(jax.lax.fori_loop(0, steps, halve, start)[1])
    # one step of Newton's method at the root, which has the derivative of the root in κ
    value, slope = jax.jvp(excess, (root,), (jnp.ones_like(root),))
    ordered = kappa > d
    return jnp.where(ordered, root - value / jnp.where(ordered, jax.lax.stop_gradient(slope), 1), 0)


def _positive(kappa: ArrayLike) -> Float[Array, "..."]:
    kappa = as_float(kappa)
    value = concrete(kappa)
    if value is not None and not (np.asarray(value) > 0).all():
        raise ValueError(f"kappa must be positive; got {value}.")
    return kappa
