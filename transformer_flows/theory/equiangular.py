"""Tokens that start at equal angles stay so: the cosine obeys a scalar equation (arXiv:2312.10794).

Score βI, value I, attraction; n tokens with common cosine ρ. Right-hand sides take numbers or arrays and broadcast.
"""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float


def equiangular_rate(rho: ArrayLike, beta: ArrayLike, n: ArrayLike) -> Float[Array, "..."]:
    """ρ' under softmax attention: 2e^{βρ}(1−ρ)((n−1)ρ+1) / (e^β + (n−1)e^{βρ})."""
    rho, beta, n = jnp.asarray(rho), jnp.asarray(beta), jnp.asarray(n)
    # divided through by e^{βρ}, so that no exponential overflows for β > 0
    return 2 * (1 - rho) * ((n - 1) * rho + 1) / (jnp.exp(beta * (1 - rho)) + n - 1)


def equiangular_rate_unnormalised(rho: ArrayLike, beta: ArrayLike, n: ArrayLike) -> Float[Array, "..."]:
    """ρ' under unnormalised attention: (2/n) e^{βρ}(1−ρ)((n−1)ρ+1)."""
    rho, beta, n = jnp.asarray(rho), jnp.asarray(beta), jnp.asarray(n)
    return 2 / n * jnp.exp(beta * rho) * (1 - rho) * ((n - 1) * rho + 1)


def two_token_rate(rho: ArrayLike, beta: ArrayLike) -> Float[Array, "..."]:
    """ρ' of two tokens under softmax attention: 2(1−ρ²)e^{βρ} / (e^β + e^{βρ})."""
    return equiangular_rate(rho, beta, 2)


def equiangular_cosine_at_zero_beta(t: ArrayLike, n: ArrayLike) -> Float[Array, "..."]:
    """ρ(t) at β = 0 from orthogonal tokens: (e^{2t}−1)/(e^{2t}+n−1); both kinds of attention agree there."""
    t, n = jnp.asarray(t), jnp.asarray(n)
    return -jnp.expm1(-2 * t) / (1 + (n - 1) * jnp.exp(-2 * t))
