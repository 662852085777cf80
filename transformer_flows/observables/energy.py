"""Interaction energy and the mobilities' slopes."""

import jax.numpy as jnp
from jaxtyping import Array

from .._types import Scalar, ScalarLike
from ..dynamics import AbstractMeasureFlow
from ..models import AbstractHeads, Tilt, apply_heads, times_exp
from ._observable import AbstractObservable, refuse_other_flow


class Energy(AbstractObservable[AbstractMeasureFlow]):
    """Interaction energy E(μ; Θ) = ½ ∫∫∫ e^{⟨x, B_θ y⟩} dμ dμ dΘ (no 1/β), a scalar.

    Overflows where the scores pass the logarithm of the largest float: use `LogEnergy` there.
    """

    def __call__(self, t: ScalarLike, x: Array, flow: AbstractMeasureFlow) -> Scalar:
        refuse_other_flow(self, flow)
        return flow.mass(flow.heads(t, x), flow.measure(x)).energy


class LogEnergy(AbstractObservable[AbstractMeasureFlow]):
    """Logarithm of the interaction energy, finite for any finite scores, a scalar."""

    def __call__(self, t: ScalarLike, x: Array, flow: AbstractMeasureFlow) -> Scalar:
        refuse_other_flow(self, flow)
        return flow.mass(flow.heads(t, x), flow.measure(x)).log_energy


class Slope(AbstractObservable[AbstractMeasureFlow]):
    """G² = (1/n) Σ_i b̂(x_i) |v(x_i)|², the squared metric derivative of the flow in W_{m,2}, a scalar.

    b̂ is the effective mobility and v the flow's velocity. For an `AttentionFlow` of several different heads this is
    neither the energy's squared slope (`EnergySlope`) nor its dissipation (`Dissipation`). Source: arXiv:2605.18870,
    the G² of its experiments.
    """

    def __call__(self, t: ScalarLike, x: Array, flow: AbstractMeasureFlow) -> Scalar:
        refuse_other_flow(self, flow)
        tilt = flow.tilt(flow.heads(t, x), flow.measure(x))
        square = jnp.sum(flow.velocity(t, x) ** 2, axis=-1)
        return tilt.integrate(times_exp(square, tilt.log_effective_mobility))


class EnergySlope(AbstractObservable[AbstractMeasureFlow]):
    """The energy's squared slope in W_{m,2}, ∫ |∇δE/δμ|²/b̂ dμ, a scalar.

    It bounds the dissipation of every flow, S² ≤ G²·slope², and equals both for `MobilityFlow`. Finite where mobilities
    overflow but it does not. Source: arXiv:2605.18870, the slope of its energy-dissipation identity.
    """

    def __call__(self, t: ScalarLike, x: Array, flow: AbstractMeasureFlow) -> Scalar:
        refuse_other_flow(self, flow)
        heads, measure = flow.heads(t, x), flow.measure(x)
        tilt = flow.tilt(heads, measure)
        gradient, log_scale = flow.scaled_energy_gradient(heads, measure, tilt)
        log_weight = 2 * log_scale - tilt.log_effective_mobility
        return tilt.integrate(times_exp(jnp.sum(gradient**2, axis=-1), log_weight))


class Action(AbstractObservable[AbstractMeasureFlow]):
    """Kinetic energy of the heads one by one, ∫∫ m |w_θ|² dΘ dμ with w_θ = P_x D_θ ȳ_θ, a scalar.

    At least the `Slope` of the head-averaged flow, which is the least action of the same mean velocity; equal to it
    for one head. Source: arXiv:2605.18870, the action that defines W_{m,2}.
    """

    def __call__(self, t: ScalarLike, x: Array, flow: AbstractMeasureFlow) -> Scalar:
        refuse_other_flow(self, flow)
        heads, measure = flow.heads(t, x), flow.measure(x)
        tilt = flow.tilt(heads, measure)
        velocity = flow.space.project(measure.points[None], apply_heads(heads.value, tilt.mean))
        return tilt.integrate(jnp.mean(tilt.mobility * jnp.sum(velocity**2, axis=-1), axis=0))


class Dissipation(AbstractObservable[AbstractMeasureFlow]):
    """S = −⟨∇E, x'⟩, the rate at which the motion of the tokens lowers the energy at fixed weights, a scalar.

    For the descending head-averaged flow it is (1/n) Σ_i ⟨(1/H)Σ_h (Z_h/n) w_h, (1/H)Σ_h w_h⟩ ≥ 0 up to the heads'
    disagreement; for an ascending flow it is negative.
    """

    def __call__(self, t: ScalarLike, x: Array, flow: AbstractMeasureFlow) -> Scalar:
        refuse_other_flow(self, flow)
        heads = flow.heads(t, x)
        return dissipation(flow, t, x, heads, flow.tilt(heads, flow.measure(x)))


def dissipation(flow: AbstractMeasureFlow, t: ScalarLike, x: Array, heads: AbstractHeads, tilt: Tilt) -> Scalar:
    """S from tilted sums already computed."""
    gradient = flow.energy_gradient(heads, flow.measure(x), tilt)
    return -tilt.integrate(jnp.sum(gradient * flow.velocity(t, x), axis=-1))
