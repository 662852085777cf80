"""How fast small perturbations of the uniform density grow on the sphere S^{d-1} (arXiv:2312.10794, arXiv:2410.23228).

Score βI and value I, attraction. The kernel e^{β⟨x,y⟩} has the harmonics as eigenfunctions, with eigenvalue λ_l for
degree l under the uniform probability measure (Funk–Hecke), so each degree grows on its own. Functions take numbers or
arrays and broadcast, and can be differentiated in β.
"""

import math

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, ArrayLike, Float

from .._types import as_float

# Gauss–Legendre nodes in the angle: 96 resolve β up to several hundred to rounding.
_NODES = 96


def kernel_eigenvalue(beta: ArrayLike, l: ArrayLike, d: ArrayLike) -> Float[Array, "..."]:
    """λ_l = Γ(d/2) (2/β)^{d/2-1} I_{l+d/2-1}(β): I_l(β) on S¹, √(π/2β) I_{l+1/2}(β) on S²; 1 at l = 0, β = 0."""
    beta = as_float(beta)
    return jnp.exp(jnp.abs(beta)) * beta ** jnp.asarray(l) * _scaled_over_power(beta, l, d)


def growth_rate(beta: ArrayLike, l: ArrayLike, d: ArrayLike, value: ArrayLike = 1.0) -> Float[Array, "..."]:
    """Growth rate of degree `l` under softmax attention: l(l+d-2) λ_l/(β λ_0), finite at β = 0.

    `value` is the factor v of heads with value vI; tied heads D = βI have value ±β.
    """
    beta = as_float(beta)
    ratio = _scaled_over_power(beta, l, d) / _scaled_over_power(beta, 0, d)
    return jnp.multiply(value, _laplacian_over_beta(beta, l, d) * ratio)


def growth_rate_unnormalised(
    beta: ArrayLike, l: ArrayLike, d: ArrayLike, value: ArrayLike = 1.0
) -> Float[Array, "..."]:
    """Growth rate of degree `l` under unnormalised attention: l(l+d-2) λ_l/β, finite at β = 0."""
    beta = as_float(beta)
    scaled = _scaled_over_power(beta, l, d)
    return jnp.multiply(value, jnp.exp(jnp.abs(beta)) * _laplacian_over_beta(beta, l, d) * scaled)


def _laplacian_over_beta(beta: Array, l: ArrayLike, d: ArrayLike) -> Array:
    """β^{l-1} times minus the eigenvalue of the Laplacian on degree l; 0 for l = 0."""
    l, d = jnp.asarray(l), jnp.asarray(d)
    return l * (l + d - 2) * beta ** jnp.maximum(l - 1, 0)


def _scaled_over_power(beta: Array, l: ArrayLike, d: ArrayLike) -> Float[Array, "..."]:
    """e^{-|β|} λ_l/β^l, an integral of positive terms: no digits are lost for small β or large l.

    By Rodrigues' formula and l integrations by parts λ_l is β^l 2^{-l} Γ(d/2)/(√π Γ(l+(d-1)/2)) times
    ∫_0^π e^{β cos θ} (sin θ)^{2l+d-2} dθ. This needs no Gegenbauer polynomial, which has no limit of its own for d = 2.
    """
    beta, l, d = (part[None].astype(beta.dtype) for part in jnp.broadcast_arrays(beta, l, d))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    angles = np.pi / 2 * (nodes + 1)
    on_nodes = lambda f: jnp.asarray(f, beta.dtype).reshape(-1, *(1,) * (beta.ndim - 1))
    cos, log_sin, weights = map(on_nodes, (np.cos(angles), np.log(np.sin(angles)), np.pi / 2 * weights))
    exponent = beta * cos - jnp.abs(beta) + (2 * l + d - 2) * log_sin
    factor = gammaln(d / 2) - gammaln(l + (d - 1) / 2) - l * math.log(2) - 0.5 * math.log(math.pi)
    return jnp.sum(weights * jnp.exp(exponent + factor), axis=0)
