"""One and two tokens under the common noise of a kernel alone (arXiv:2604.26898): exact laws, not solved here.

Cosines beyond ±1 and negative times raise `ValueError`.
"""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._types import as_float
from ._arguments import cosine, not_negative
from .activation_kernel import ActivationKernel


def correlation(kernel: ActivationKernel, t: ArrayLike) -> Float[Array, "..."]:
    """E⟨X_t, X_0⟩ = e^{−(d−1)k(1)t/2} of one token."""
    return jnp.exp(-0.5 * (kernel.d - 1) * kernel(1.0) * not_negative(t, "t"))


def pair_drift(kernel: ActivationKernel, rho: ArrayLike) -> Float[Array, "..."]:
    """The Itô drift (d−2+ρ²)k(ρ) − (d−1)k(1)ρ of the cosine of two tokens, per unit of depth."""
    rho, d = cosine(rho, "rho"), kernel.d
    return (d - 2 + rho * rho) * kernel(rho) - (d - 1) * kernel(1.0) * rho


def pair_variance(kernel: ActivationKernel, rho: ArrayLike) -> Float[Array, "..."]:
    """Its variance 2(1−ρ²)(k(1) − ρk(ρ)) per unit of depth: dρ = drift dt + √variance dw."""
    rho = cosine(rho, "rho")
    return 2 * (1 - rho * rho) * (kernel(1.0) - rho * kernel(rho))


def moment_exponent(kernel: ActivationKernel, p: ArrayLike) -> Float[Array, "..."]:
    """Λ(p) = (p/2)[λ̄ + (p−2)(k(1)+k'(1))]: near synchronisation E|δ|^p of the distance δ of two tokens is e^{Λ(p)t}.

    Λ(2) = λ̄ is `pair_rate`, and Λ'(0) the largest of `lyapunov_exponents`.
    """
    p, d, k, slope = as_float(p), kernel.d, kernel(1.0), kernel.derivative(1.0)
    return p / 2 * ((d - 1) * slope - (d - 3) * k + (p - 2) * (k + slope))
