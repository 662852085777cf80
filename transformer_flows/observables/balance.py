"""The energy balance of a flow whose weights move: every term that changes the energy, and what is left over."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar, ScalarLike, Tokens
from ..dynamics import AbstractMeasureFlow
from ..models import AbstractHeads, Tilt, mean_norm_square, mean_square, pair_products, queries
from ._observable import AbstractIntegral, refuse_other_flow
from .energy import dissipation


class Balance(NamedTuple):
    """Terms of E_T − E_0 = weight_drift + ito + martingale − dissipation + residual, each accumulated from the start.

    `remainder` is the realised second-order term of the noise minus its expectation `ito`: it has mean zero and is
    what keeps `residual` at order 1/2 along one noise path. `pathwise_residual` closes at order 1 on every path.
    """

    energy_change: Float[Array, "*t"]
    weight_drift: Float[Array, "*t"]
    ito: Float[Array, "*t"]
    martingale: Float[Array, "*t"]
    dissipation: Float[Array, "*t"]
    remainder: Float[Array, "*t"]
    residual: Float[Array, "*t"]

    @property
    def pathwise_residual(self) -> Float[Array, "*t"]:
        """The residual with the realised second-order term in place of the expected one."""
        return self.residual - self.remainder


class _Terms(NamedTuple):
    weight_drift: Scalar
    ito: Scalar
    martingale: Scalar
    dissipation: Scalar
    remainder: Scalar


class EnergyBalance(AbstractIntegral[AbstractMeasureFlow]):
    """The energy balance with moving weights, noisy ones included, a `Balance` of scalars (arXiv:2605.18870).

    Smooth weights and the dissipation S are integrated by the solver at its own order. Weights driven by noise enter
    by sums over the steps with the left point (Itô): drift f(D_k)Δt, noise gΔW = D_{k+1} − D_k − f(D_k)Δt. At a jump
    of the weights `weight_drift` takes E(x, D⁺) − E(x, D⁻) exactly.
    """

    def __call__(self, t: ScalarLike, x: Array, flow: AbstractMeasureFlow) -> Scalar:
        refuse_other_flow(self, flow)
        return flow.mass(flow.heads(t, x), flow.measure(x)).energy

    def rate(self, t: ScalarLike, x: Array, flow: AbstractMeasureFlow) -> _Terms:
        heads, measure = flow.heads(t, x), flow.measure(x)
        tilt = flow.tilt(heads, measure)
        zero = jnp.zeros((), x.dtype)
        derivative = flow.path.derivative(t)
        drift = zero if derivative is None else _first_order(measure.points, tilt, _cast(derivative, x))
        return _Terms(drift, zero, zero, dissipation(flow, t, x, heads, tilt), zero)

    def jump(self, t0: ScalarLike, t1: ScalarLike, x0: Array, x1: Array, flow: AbstractMeasureFlow) -> _Terms | None:
        if flow.path.jumps is not None:
            return _at_jump(t0, t1, x1, flow)
        if flow.path.grid is None or flow.path.derivative(t0) is not None:
            return None  # the weights move smoothly: `rate` has it all
        return _noise_step(t0, t1, x0, flow)

    def report(self, first: Scalar, now: Scalar, total: _Terms) -> Balance:
        change = now - first
        explained = total.weight_drift + total.ito + total.martingale - total.dissipation
        return Balance(
            energy_change=change,
            weight_drift=total.weight_drift,
            ito=total.ito,
            martingale=total.martingale,
            dissipation=total.dissipation,
            remainder=total.remainder,
            residual=change - explained,
        )


def _noise_step(t0: ScalarLike, t1: ScalarLike, state: Array, flow: AbstractMeasureFlow) -> _Terms:
    """Itô sums of one step: first order in both parts of the increment, second order expected and realised."""
    heads, measure = flow.heads(t0, state), flow.measure(state)
    x = measure.points
    tilt = flow.tilt(heads, measure)  # the sums that moved the measure, shared with it when compiled
    second = flow.tilt(heads, measure, pair_products(x)).mean
    step = flow.path.increment(t0, t1)
    drift, noise = _cast(step.drift, x), _cast(step.martingale, x)
    x_square = jnp.sum(x**2, axis=-1)
    unit = heads.noise_square(x_square, mean_norm_square(second, x.shape[1]), mean_square(x[None], second))
    ito = 0.25 * _average(tilt, unit * step.variance.astype(x.dtype))
    whole = queries(drift, x) + queries(noise, x)
    realised = 0.25 * _average(tilt, mean_square(whole, second))
    return _Terms(
        weight_drift=_first_order(x, tilt, drift),
        ito=ito,
        martingale=_first_order(x, tilt, noise),
        dissipation=jnp.zeros((), x.dtype),
        remainder=realised - ito,
    )


def _at_jump(t0: ScalarLike, t1: ScalarLike, x1: Array, flow: AbstractMeasureFlow) -> _Terms:
    """The energy gained when the weights jump at the end of the step; zero where they do not."""
    before, after = flow.heads(jnp.nextafter(*jax.lax.stop_gradient((t1, t0))), x1), flow.heads(t1, x1)
    measure = flow.measure(x1)
    gain = flow.mass(after, measure).energy - flow.mass(before, measure).energy
    zero = jnp.zeros((), x1.dtype)
    return _Terms(gain, zero, zero, zero, zero)


def _first_order(x: Tokens, tilt: Tilt, change: AbstractHeads) -> Scalar:
    """(1/2Hn²) Σ e^{⟨x_i,D x_j⟩} ⟨x_i, ΔD x_j⟩ for a change ΔD of the scores."""
    return 0.5 * _average(tilt, jnp.sum(queries(change, x) * tilt.mean, axis=-1))


def _average(tilt: Tilt, f: Float[Array, "h n"]) -> Scalar:
    """Mean over heads and tokens of the mass times `f`."""
    return tilt.integrate(jnp.mean(tilt.mobility * f, axis=0))


def _cast(heads: AbstractHeads, x: Array) -> AbstractHeads:
    return jax.tree.map(lambda leaf: leaf.astype(x.dtype), heads)
