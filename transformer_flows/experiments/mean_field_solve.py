"""The solves of the mean-field experiment: growth rates, the density over time, and the errors of tokens."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from .. import theory
from .._types import Tokens
from ..dynamics import AttentionFlow, DensityFlow
from ..geometry import AbstractBasis, FourierModes, Sphere, SphericalHarmonics
from ..integrate import solve
from ..models import Heads
from ..observables import Energy, LeastDensity
from ..transport import wasserstein
from .equiangular import KINDS
from .unit import Arrays

if TYPE_CHECKING:
    from .mean_field import MeanField

# Names of the errors of tokens; the last is of the circle alone.
QUANTITIES = ("energy", "moments", "W_2")
RATES = {"softmax": theory.growth_rate, "unnormalised": theory.growth_rate_unnormalised}
# Moments of degree 1 to this one are compared.
LOW = 3


def measured_rates(spec: "MeanField", law: str, beta: float) -> Arrays:
    """Growth rates of the degrees 1 … `modes`, from small perturbations ± in one function of each degree.

    Half the difference of the two has no terms of second order. The size is the cube root of the rounding error, where
    the terms of third order and what the solve rounds are equally small. The time is short against the fastest growth.
    """
    basis = _basis(spec)
    first = np.searchsorted(basis.degrees, np.arange(1, spec.modes + 1))
    size = float(jnp.finfo(spec.dtype).eps) ** (1 / 3)
    rtol = 1e-9 if spec.dtype == "float64" else 1e-5
    time = 0.5 / float(predicted_rates(spec, law, beta).max())
    flow = _density_flow(spec, law, beta, basis)
    ends = []
    for sign in (1, -1):
        start = jnp.zeros(basis.size, spec.dtype).at[0].set(1).at[first].set(sign * size)
        # to the accuracy of the perturbation, which is small against the mass
        states = solve(flow, start, [0.0, time], rtol=rtol, atol=rtol * size).states
        assert states is not None
        ends.append(np.asarray(states)[-1, first])
    return {"rate": np.log((ends[0] - ends[1]) / (2 * size)) / time}


def predicted_rates(spec: "MeanField", law: str, beta: float) -> np.ndarray:
    """What the linear theory gives for `measured_rates`."""
    return np.asarray(RATES[law](beta, np.arange(1, spec.modes + 1), spec.d))


def follow_density(spec: "MeanField") -> Arrays:
    """The density at the recorded times, and its coefficients and energy at the end.

    `least` is the least density at the nodes, negative where the basis does not resolve it, and `tail` the length of
    the coefficients of the highest degree relative to all of them.
    """
    basis = _basis(spec)
    flow = _density_flow(spec, spec.flow_law, spec.flow_beta, basis)
    x = basis.nodes.astype(spec.dtype)
    start = basis.coefficients(jnp.exp(spec.strength * (x[:, 0] + x[:, 0] * x[:, 1])))
    start = start / start[0]
    ts = np.linspace(0.0, spec.T, spec.records)
    followed = solve(flow, start, ts, observe={"energy": Energy(), "least": LeastDensity()})
    assert followed.states is not None
    states = np.asarray(followed.states)
    size = np.linalg.norm(states, axis=1)
    return {
        "start": states[0],
        "end": states[-1],
        "energy": np.asarray(followed.observed["energy"])[-1],
        "density": states @ np.asarray(basis.values).T,
        "mass": states[:, 0],
        "least": np.asarray(followed.observed["least"]),
        "tail": np.linalg.norm(states[:, basis.degrees == spec.degree], axis=1) / size,
        "nodes": np.asarray(basis.nodes),
    }


def token_errors(spec: "MeanField", n: int, density: Arrays) -> Arrays:
    """Distances of n tokens at time T, drawn from the density at t = 0, to the density at T; one for each draw."""
    basis = _basis(spec)
    flow = AttentionFlow(Sphere(spec.d), Heads.identity(spec.d, beta=spec.flow_beta), kind=KINDS[spec.flow_law])
    start, end = jnp.asarray(density["start"]), jnp.asarray(density["end"])
    errors = []
    for draw in range(spec.draws):
        # as many as ever needed, so that this is compiled once
        x0 = basis.sample(jr.fold_in(jr.fold_in(jr.key(spec.seed), n), draw), start, max(spec.n))[:n]
        # far more accurate than the tokens are near the density
        run = solve(flow, x0, [0.0, spec.T], rtol=1e-5, atol=1e-6, observe={"energy": Energy()})
        assert run.states is not None
        tokens, energy = run.states[-1], run.observed["energy"][-1]
        errors.append([abs(energy - density["energy"]), *_distances(basis, tokens, end)])
    return dict(zip(spec.quantities, np.array(errors, float).T, strict=True))


@eqx.filter_jit
def _distances(basis: AbstractBasis, x: Tokens, coefficients: Array) -> list[Array]:
    """Root mean square error of the low moments, and on the circle W_2 to as many quantiles of the density."""
    low = np.flatnonzero((basis.degrees > 0) & (basis.degrees <= LOW))
    distances = [jnp.sqrt(jnp.mean((basis.empirical(x) - coefficients)[low] ** 2))]
    if isinstance(basis, FourierModes):
        distances.append(wasserstein(x, basis.quantiles(coefficients, x.shape[0]), basis.manifold))
    return distances


def _basis(spec: "MeanField") -> AbstractBasis:
    return FourierModes(spec.degree) if spec.d == 2 else SphericalHarmonics(spec.degree)


def _density_flow(spec: "MeanField", law: str, beta: float, basis: AbstractBasis) -> DensityFlow:
    return DensityFlow(AttentionFlow(Sphere(spec.d), Heads.identity(spec.d, beta=beta), kind=KINDS[law]), basis)
