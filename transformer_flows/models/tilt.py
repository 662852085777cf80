"""The tilted sums of every head at every token, and what follows from them alone.

With Z_h(x_i)/n the mass of head h at token i, these are the objects of spec sections "Geometry" and "Two flows":
mobility, effective mobility, interaction energy and the gradient of its first variation.
"""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jaxtyping import Array, Float

from .._types import Scalar, Tokens
from .heads import AbstractHeads


class Tilt(eqx.Module):
    """Log mass log ∫ e^{⟨Bx,y⟩} dμ(y) `(h, n)` and tilted means of the attended values `(h, n, v)` at the tokens.

    `token_weights` `(n,)` is the measure μ itself, the mass of each of its points: 1/n per token, 0 for tokens that do
    not exist.
    """

    log_mass: Float[Array, "h n"]
    mean: Float[Array, "h n v"]
    token_weights: Float[Array, "n"]

    @property
    def mobility(self) -> Float[Array, "h n"]:
        """Head mobility m_μ(x, θ) = ∫ e^{⟨x, D_θ y⟩} dμ(y)."""
        return jnp.exp(self.log_mass)

    @property
    def effective_mobility(self) -> Float[Array, "n"]:
        """Harmonic mean of the head mobilities, b̂(x) = (∫ m_μ(x,θ)^{-1} dΘ(θ))^{-1}."""
        return jnp.exp(self.log_effective_mobility)

    @property
    def log_effective_mobility(self) -> Float[Array, "n"]:
        """log b̂(x), finite where b̂ overflows or is 0 to rounding."""
        return log_harmonic_mean(self.log_mass)

    @property
    def energy(self) -> Scalar:
        """Interaction energy E = ½ ∫∫∫ e^{⟨x, D_θ y⟩} dμ dμ dΘ."""
        return 0.5 * self.integrate(jnp.mean(self.mobility, axis=0))

    @property
    def log_energy(self) -> Scalar:
        """Logarithm of the energy, finite where the energy overflows."""
        h = self.log_mass.shape[0]
        weights = jnp.broadcast_to(self.token_weights[None], self.log_mass.shape)
        return logsumexp(self.log_mass, b=weights) - jnp.log(2.0 * h).astype(self.log_mass.dtype)

    def integrate(self, f: Float[Array, "n"]) -> Scalar:
        """∫ f dμ."""
        return jnp.sum(self.token_weights * f)


def log_harmonic_mean(log_mass: Float[Array, "h n"]) -> Float[Array, "n"]:
    """Logarithm of the heads' harmonic mean."""
    return math.log(log_mass.shape[0]) - logsumexp(-log_mass, axis=0)


def times_exp(f: Float[Array, "*#batch"], log: Float[Array, "*#batch"]) -> Float[Array, "*batch"]:
    """f e^log, which may be representable where e^log is not; where it is not either, ±inf or 0, and 0 for f = 0.

    e^{log/2} kept within the range of floats takes every f from one end of it to the other.
    """
    floats = jnp.finfo(f.dtype)
    # short of the ends, which the exponential of a rounded logarithm may pass
    half = jnp.exp(jnp.clip(log / 2, math.log(1.1 * float(floats.tiny)), math.log(0.9 * float(floats.max))))
    return f * half * half


def pair_products(x: Float[Array, "*batch d"]) -> Float[Array, "*batch q"]:
    """The products x_a x_b with a <= b, in rows of x xᵀ: second moments as attended values; q = d(d+1)/2."""
    a, b = np.triu_indices(x.shape[-1])
    return x[..., a] * x[..., b]


def mean_square(u: Float[Array, "*#batch d"], second: Float[Array, "*#batch q"]) -> Float[Array, "*#batch"]:
    """Mean of ⟨u, y⟩² over y with mean pair products `second`."""
    a, b = np.triu_indices(u.shape[-1])
    # coordinates first: loops over a short last axis are not vectorised
    u, second = jnp.moveaxis(u, -1, 0), jnp.moveaxis(second, -1, 0)
    twice = jnp.asarray(np.where(a == b, 1, 2), u.dtype).reshape(-1, *(1,) * (u.ndim - 1))
    return jnp.sum(twice * u[a] * u[b] * second, axis=0)


def mean_norm_square(second: Float[Array, "*batch q"], d: int) -> Float[Array, "*batch"]:
    """Mean of |y|² over y in R^d with mean pair products `second`."""
    a, b = np.triu_indices(d)
    return jnp.sum(second[..., a == b], axis=-1)


def apply_heads(matrices: Float[Array, "h d d"], x: Float[Array, "h n d"]) -> Float[Array, "h n d"]:
    """Each head's matrix times each of its vectors, at full precision on every device."""
    return jnp.einsum("hij,hnj->hni", matrices, x, precision="highest")


def queries(heads: AbstractHeads, x: Tokens) -> Float[Array, "h n d"]:
    """B_h x_i: the vectors whose inner products with the keys are the scores."""
    return jnp.einsum("hij,nj->hni", heads.score, x, precision="highest")
