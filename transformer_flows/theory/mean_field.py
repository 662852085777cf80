"""How fast small perturbations of the uniform density grow on the sphere S^{d-1} (arXiv:2312.10794, arXiv:2410.23228).

Score βI and value I, attraction. The kernel e^{β⟨x,y⟩} has the harmonics as eigenfunctions, with eigenvalue λ_l for
degree l under the uniform probability measure (Funk–Hecke), so each degree grows on its own. Functions take numbers or
arrays and broadcast, and can be differentiated in β.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jax.scipy.special import gammaln
from jaxtyping import Array, ArrayLike, Float

from .._types import as_float

# Gauss–Legendre nodes over the peak, and how far from it they reach in its widths.
_NODES = 96
_REACH = 12


def kernel_eigenvalue(beta: ArrayLike, l: ArrayLike, d: ArrayLike) -> Float[Array, "..."]:
    """λ_l = Γ(d/2) (2/β)^{d/2-1} I_{l+d/2-1}(β): I_l(β) on S¹, √(π/2β) I_{l+1/2}(β) on S²; 1 at l = 0, β = 0.

    It grows like e^{|β|} and is inf where that is larger than the largest float.
    """
    beta = as_float(beta)
    return _power(beta, jnp.asarray(l), _log_over_power(beta, l, d) + _size(beta))


def growth_rate(beta: ArrayLike, l: ArrayLike, d: ArrayLike, value: ArrayLike = 1.0) -> Float[Array, "..."]:
    """Growth rate of degree `l` under softmax attention: l(l+d-2) λ_l/(β λ_0), finite for all β, 0 too.

    `value` is the factor v of heads with value vI; tied heads D = βI have value ±β.
    """
    beta = as_float(beta)
    return _rate(beta, l, d, value, _log_over_power(beta, l, d) - _log_over_power(beta, 0, d))


def growth_rate_unnormalised(
    beta: ArrayLike, l: ArrayLike, d: ArrayLike, value: ArrayLike = 1.0
) -> Float[Array, "..."]:
    """Growth rate of degree `l` under unnormalised attention: l(l+d-2) λ_l/β, finite at β = 0.

    It grows like e^{|β|} and is inf where that is larger than the largest float.
    """
    beta = as_float(beta)
    return _rate(beta, l, d, value, _log_over_power(beta, l, d) + _size(beta))


def _rate(beta: Array, l: ArrayLike, d: ArrayLike, value: ArrayLike, log: Array) -> Array:
    """l(l+d-2) β^{l-1} e^log times the value; 0 for l = 0, also where e^log overflows."""
    l, d = jnp.asarray(l), jnp.asarray(d)
    grows = _power(beta, jnp.maximum(l - 1, 0), jnp.where(l > 0, log, 0))
    return jnp.multiply(value, l * (l + d - 2) * grows)


def _power(beta: Array, k: Array, log: Array) -> Array:
    """β^k e^log, in which β^k alone may overflow."""
    unit = jax.lax.stop_gradient(jnp.maximum(jnp.abs(beta), 1))
    return (beta / unit) ** k * jnp.exp(log + k * jnp.log(unit))


def _size(beta: Array) -> Array:
    """|β|, which for derivatives at 0 is β: what is even in β has the right ones of every order."""
    return jnp.where(beta < 0, -beta, beta)


@jax.jit
def _log_over_power(beta: Array, l: ArrayLike, d: ArrayLike) -> Float[Array, "..."]:
    """log(e^{-|β|} λ_l/β^l), from an integral of positive terms: no digits are lost for small β or large l.

    By Rodrigues' formula and l integrations by parts λ_l is β^l 2^{-l} Γ(d/2)/(√π Γ(l+(d-1)/2)) times
    ∫_0^π e^{β cos θ} (sin θ)^p dθ, p = 2l+d-2. This needs no Gegenbauer polynomial, which has no limit of its own for
    d = 2. The integrand times sin θ, whose peak is never at an end, has it where tan θ = √(qs)/|β|, with q = p+1,
    R = √(q²+4β²) and s = (q+R)/2, and the width R^{-1/2}. Derivatives are taken at fixed nodes around it.
    """
    size, l, d = (part[None].astype(beta.dtype) for part in jnp.broadcast_arrays(_size(beta), l, d))
    p = 2 * l + d - 2
    nodes, weights = (
        jnp.asarray(part, beta.dtype).reshape(-1, *(1,) * (size.ndim - 1))
        for part in np.polynomial.legendre.leggauss(_NODES)
    )
    still, q = jax.lax.stop_gradient(size), p + 1
    root = jnp.hypot(q, 2 * still)
    peak, reach = jnp.arctan2(jnp.sqrt(q * (q + root) / 2), still), _REACH / jnp.sqrt(root)
    low, high = jnp.maximum(peak - reach, 0), jnp.minimum(peak + reach, np.pi)
    angle, weights = low + (high - low) * (nodes + 1) / 2, (high - low) * weights / 2
    exponent = p * jnp.log(jnp.sin(angle)) - 2 * size * jnp.sin(angle / 2) ** 2
    factor = gammaln(d / 2) - gammaln(l + (d - 1) / 2) - l * math.log(2) - 0.5 * math.log(math.pi)
    return (factor + logsumexp(exponent, axis=0, b=weights, keepdims=True))[0]
