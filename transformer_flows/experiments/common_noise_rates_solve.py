"""The solves of the rates under common noise."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .. import theory
from ..dynamics import CommonNoiseFlow, NoisyTangentFlow, RestFlow
from ..geometry import Sphere
from ..integrate import solve_ensemble
from ..models import GaussianField
from ..observables import GapEnergy
from ..theory import ActivationKernel
from .moving_weights import fold
from .random_layers import ACTIVATIONS, seeds
from .unit import Arrays

if TYPE_CHECKING:
    from .common_noise_rates import CommonNoiseRates

# Fixed numbers that keep the draws of one seed apart.
PAIR, LAW, GAP, SPECTRUM = range(4)
# Steps of the scalar equation within one of the flow.
FINER = 16


def kernel_of(spec: "CommonNoiseRates") -> ActivationKernel:
    """The kernel; its biases are of one variance."""
    return ActivationKernel(ACTIVATIONS[spec.activation], spec.d, spec.weight, spec.bias**2, spec.bias**2)


def two_tokens(spec: "CommonNoiseRates") -> Arrays:
    """For every draw and time, the cosine of two tokens that start orthogonal, and of the first with its start."""
    x0 = jnp.eye(2, spec.d, dtype=spec.dtype)
    states = solve_ensemble(_flow(spec), x0, spec.times, _keys(spec, PAIR), dt=_step(spec)).states
    assert states is not None
    x = np.asarray(states)
    return {"cosine": np.sum(x[:, :, 0] * x[:, :, 1], axis=-1), "correlation": x[:, :, 0, 0]}


def pair_law(spec: "CommonNoiseRates") -> Arrays:
    """Samples `(sample, t)` of the cosine by its scalar equation: Euler's method with steps short enough near ρ = 1."""
    kernel, h, steps = kernel_of(spec), _step(spec) / FINER, spec.steps * FINER

    @jax.jit
    def follow(key: Array) -> Float[Array, "t s"]:
        def step(rho: Float[Array, "s"], number: Array) -> tuple[Float[Array, "s"], None]:
            dw = jnp.sqrt(h) * jr.normal(jr.fold_in(key, number), rho.shape)
            spread = jnp.sqrt(jnp.maximum(theory.pair_variance(kernel, rho), 0))
            return jnp.clip(rho + theory.pair_drift(kernel, rho) * h + spread * dw, -1, 1), None

        def record(rho: Float[Array, "s"], first: Array) -> tuple[Float[Array, "s"], Float[Array, "s"]]:
            rho, _ = jax.lax.scan(step, rho, first + jnp.arange(steps))
            return rho, rho

        start = jnp.zeros(spec.samples)
        _, later = jax.lax.scan(record, start, steps * jnp.arange(spec.records - 1))
        return jnp.concatenate([start[None], later])

    return {"cosine": np.asarray(follow(fold(spec.seed, LAW))).T}


def gap_energies(spec: "CommonNoiseRates") -> Arrays:
    """The gap energy `(draw, t)` of uniform tokens, others for every draw."""
    keys = _keys(spec, GAP)
    x0 = jax.vmap(lambda key: Sphere(spec.d).uniform(jr.fold_in(key, 1), spec.n))(keys).astype(spec.dtype)
    observe = {"gap": GapEnergy(spec.beta)}
    solution = solve_ensemble(
        _flow(spec), x0, spec.times, keys, in_axes=(None, 0), dt=_step(spec), observe=observe, states=False
    )
    return {"gap": np.asarray(solution.observed["gap"])}


def exponents(spec: "CommonNoiseRates") -> Arrays:
    """Growth rates `(draw, i)` of the volumes' factors over the long depth."""
    flow = NoisyTangentFlow(_flow(spec))
    of_start, of_frame = jr.split(fold(spec.seed, SPECTRUM))
    x0 = Sphere(spec.d).uniform(of_start, 1).astype(spec.dtype)
    frame = flow.manifold.frame(of_frame, x0, spec.d - 1)
    steps = max(round(spec.long / _step(spec)), 1)
    keys = seeds(spec.seed + 1, spec.long_draws)
    states = solve_ensemble(flow, frame, np.array([0.0, spec.long]), keys, dt=spec.long / steps).states
    assert states is not None
    return {"exponents": np.asarray(states.growth)[:, -1] / spec.long}


def _flow(spec: "CommonNoiseRates") -> CommonNoiseFlow:
    return CommonNoiseFlow(RestFlow(Sphere(spec.d)), GaussianField(kernel_of(spec)))


def _keys(spec: "CommonNoiseRates", which: int) -> Array:
    return jr.split(fold(spec.seed, which), spec.draws)


def _step(spec: "CommonNoiseRates") -> float:
    return spec.T / (spec.records - 1) / spec.steps
