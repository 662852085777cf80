"""Interaction energy and the mobilities' slopes."""

import jax.numpy as jnp

from .._types import Scalar, ScalarLike, Tokens
from ..dynamics import AttentionFlow
from ..models import AbstractHeads, TiedHeads, Tilt, apply_heads
from ._observable import AbstractObservable, refuse_other_flow


class Energy(AbstractObservable[AttentionFlow]):
    """Interaction energy E(μ; Θ) = ½ ∫∫∫ e^{⟨x, B_θ y⟩} dμ dμ dΘ (no 1/β), a scalar.

    Overflows where the scores pass the logarithm of the largest float: use `LogEnergy` there.
    """

    def __call__(self, t: ScalarLike, x: Tokens, flow: AttentionFlow) -> Scalar:
        refuse_other_flow(self, flow)
        return flow.tilt(flow.heads(t, x), x, x[:, :0]).energy


class LogEnergy(AbstractObservable[AttentionFlow]):
    """Logarithm of the interaction energy, finite for any finite scores, a scalar."""

    def __call__(self, t: ScalarLike, x: Tokens, flow: AttentionFlow) -> Scalar:
        refuse_other_flow(self, flow)
        return flow.tilt(flow.heads(t, x), x, x[:, :0]).log_energy


class Slope(AbstractObservable[AttentionFlow]):
    """G² = (1/n) Σ_i b̂(x_i) |v(x_i)|², the squared metric derivative of the flow in W_{m,2}, a scalar.

    b̂ is the effective mobility and v the flow's velocity. For several different heads this is neither the energy's
    squared slope nor its dissipation (`Dissipation`). Source: arXiv:2605.18870, the G² of its experiments.
    """

    def __call__(self, t: ScalarLike, x: Tokens, flow: AttentionFlow) -> Scalar:
        refuse_other_flow(self, flow)
        tilt = flow.tilt(flow.heads(t, x), x, x)
        return tilt.integrate(tilt.effective_mobility * jnp.sum(flow(t, x) ** 2, axis=-1))


class Dissipation(AbstractObservable[AttentionFlow]):
    """S = −⟨∇E, x'⟩, the rate at which the motion of the tokens lowers the energy at fixed weights, a scalar.

    For the descending head-averaged flow it is (1/n) Σ_i ⟨(1/H)Σ_h (Z_h/n) w_h, (1/H)Σ_h w_h⟩ ≥ 0 up to the heads'
    disagreement; for an ascending flow it is negative.
    """

    def __call__(self, t: ScalarLike, x: Tokens, flow: AttentionFlow) -> Scalar:
        refuse_other_flow(self, flow)
        heads = flow.heads(t, x)
        return dissipation(flow, t, x, heads, flow.tilt(heads, x, x))


def dissipation(flow: AttentionFlow, t: ScalarLike, x: Tokens, heads: AbstractHeads, tilt: Tilt) -> Scalar:
    """S from tilted sums already computed."""
    gradient = energy_gradient(flow, x, heads, tilt)
    return -tilt.integrate(jnp.sum(gradient * flow(t, x), axis=-1))


def energy_gradient(flow: AttentionFlow, x: Tokens, heads: AbstractHeads, tilt: Tilt) -> Tokens:
    """∇(δE/δμ)(x_i) `(n, d)`, tangent: n times the Riemannian gradient of the energy at token i.

    Equal to (1/H) Σ_h m_h(x_i) P_x D_h ȳ_h(x_i) for symmetric scores, ȳ_h being the tilted mean. A score that is
    not symmetric contributes half from each side: token i as the query and as a key.
    """
    x = flow.measure(x).points  # zeros in place of what padding holds
    gradient = _one_sided(jnp.swapaxes(heads.score, -1, -2), tilt)
    if not isinstance(heads, TiedHeads):
        mirrored = type(heads)(score=jnp.swapaxes(heads.score, -1, -2), value=heads.value)
        gradient = 0.5 * (gradient + _one_sided(heads.score, flow.tilt(mirrored, x, x)))
    return flow.manifold.project(x, gradient)


def _one_sided(matrices, tilt: Tilt):
    return jnp.mean(tilt.mobility[..., None] * apply_heads(matrices, tilt.mean), axis=0)
