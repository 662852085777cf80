"""Rates of synchronisation by the common noise of deep random MLPs, from their kernel alone (arXiv:2604.26898).

Rates are per unit of depth t (dimensionless). A negative β, for which the gap energy measures nothing, and cosines
beyond ±1 raise `ValueError`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from .._types import Scalar
from ._arguments import cosine, not_negative
from .activation_kernel import ActivationKernel

_GRID = 513
_ZOOMS = 4


def lyapunov_exponents(kernel: ActivationKernel) -> Float[Array, "{kernel.d}-1"]:
    """λ_i = ½[(d−1−2i) k'(1) − (d−1) k(1)] for i = 1 … d−1, of the flow without attention, largest first."""
    d, k, slope = kernel.d, kernel(1.0), kernel.derivative(1.0)
    i = jnp.arange(1, d, dtype=k.dtype)
    return 0.5 * ((d - 1 - 2 * i) * slope - (d - 1) * k)


def pair_rate(kernel: ActivationKernel) -> Scalar:
    """λ̄ = (d−1) k'(1) − (d−3) k(1): near synchronisation the mean squared distance of two tokens grows at this rate."""
    d = kernel.d
    return (d - 1) * kernel.derivative(1.0) - (d - 3) * kernel(1.0)


def dissipation_rate(kernel: ActivationKernel, beta: ArrayLike) -> Scalar:
    """λ̄' = −inf F(u) over u in [−1, 1): without attention E[E_β(μ_t)] <= e^{λ̄' t} E[E_β(μ_0)].

    E_β is the gap energy ½ ∫∫ (e^β − e^{β⟨x,y⟩}) dμ dμ. Attention adds ε to the rate where dE_β/dt <= ε E_β along it.
    The infimum is the smaller of the limit at u = 1, −λ̄, and the minimum below it, found on a grid that is refined
    around its lowest point. Differentiable, with the minimiser held fixed.
    """
    beta = not_negative(beta, "beta")
    if beta.ndim:
        raise ValueError(f"beta must be one number; got shape {beta.shape}.")
    # angles: the points crowd at u = 1, where F may be approached like a square root
    theta = jnp.linspace(0, np.pi, _GRID, dtype=beta.dtype)
    for _ in range(_ZOOMS):
        values = energy_decay(kernel, beta, jnp.cos(theta))
        lowest = jnp.argmin(values)
        ends = theta[jnp.maximum(lowest - 1, 0)], theta[jnp.minimum(lowest + 1, _GRID - 1)]
        theta = jnp.linspace(*ends, _GRID, dtype=beta.dtype)
    best = jax.lax.stop_gradient(theta[jnp.argmin(energy_decay(kernel, beta, jnp.cos(theta)))])
    return jnp.maximum(-energy_decay(kernel, beta, jnp.cos(best)), pair_rate(kernel))


def energy_decay(kernel: ActivationKernel, beta: ArrayLike, u: ArrayLike) -> Float[Array, "..."]:
    """F(u) = βe^{βu} G(u)/(e^β − e^{βu}), the relative decay of the gap energy of a pair at cosine u <= 1.

    G = k(u)(d−2+u²−βu(1−u²)) + k(1)(β(1−u²)−(d−1)u), which is
    (1−u)[k(1)(d−2−u+β(1−u²)) − κ(d−2+u²−βu(1−u²))] with the slope κ = (k(1)−k(u))/(1−u): no digits are lost near
    u = 1, where F is −λ̄. At β = 0 the first factor is its limit 1/(1−u).
    """
    beta, u = not_negative(beta, "beta"), cosine(u, "u")
    d, gap, top = kernel.d, 1 - u, kernel(jnp.ones((), u.dtype))
    square = gap * (1 + u)
    # k'((1+u)/2) for cosines so close that the difference of two values of k is rounding
    close = gap < jnp.finfo(u.dtype).eps ** (1 / 3)
    chord = (top - kernel(u)) / jnp.where(close, 1, gap)
    slope = jnp.where(close, kernel.derivative(1 - gap / 2), chord)
    g = top * (d - 2 - u + beta * square) - slope * (d - 2 + u * u - beta * u * square)
    x = beta * gap
    small = jnp.abs(x) < 1e-6
    return g * jnp.where(small, 1 - x / 2, x / jnp.expm1(jnp.where(small, 1, x)))


def is_dissipative(kernel: ActivationKernel, beta: ArrayLike, epsilon: ArrayLike = 0.0) -> Bool[Array, ""]:
    """Whether the mean gap energy decays: ε < inf F, where attention adds at most `epsilon` to its rate.

    ε = 0 without attention, and for attention with value I and score βI.
    """
    return dissipation_rate(kernel, beta) + jnp.asarray(epsilon) < 0


def smallest_bias(kernel: ActivationKernel, beta: ArrayLike, epsilon: ArrayLike = 0.0) -> float:
    """The smallest variance σ² of both biases (hidden and output) for which `is_dissipative`; inf if none up to 1e6.

    The other scales are those of the kernel, whose own biases do not matter. On the host, to six digits: the first
    variance of a fine grid that does, and bisection below it.
    """
    holds = eqx.filter_jit(
        lambda variance: is_dissipative(
            ActivationKernel(kernel.activation, kernel.d, kernel.weight, variance, variance), beta, epsilon
        )
    )
    grid = np.concatenate([[0.0], np.geomspace(1e-8, 1e6, 141)])
    first = next((i for i, variance in enumerate(grid) if holds(jnp.asarray(variance))), None)
    if first is None or first == 0:
        return float("inf") if first is None else 0.0
    low, high = grid[first - 1], grid[first]
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(jnp.asarray(middle)) else (middle, high)
    return float(high)
