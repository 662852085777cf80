"""Errors of one perturbation of the weights at one level, for every draw."""

import functools
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from .._types import Key, Scalar, ScalarLike, Times, Tokens
from ..dynamics import AttentionFlow
from ..geometry import Sphere
from ..integrate import Tsit5, solve
from ..models import Heads, TiedHeads
from ..observables import Energy
from ..paths import Oscillating, Prescribed, phase_spread
from .moving_weights import draw_heads, fold, oscillating
from .stability import distances
from .unit import Arrays

if TYPE_CHECKING:
    from .weight_limit import WeightLimit

QUANTITIES = {
    "distance": "W₂ of the clouds",
    "energy": "energy along the flows",
    "test_energy": "energy of test measures",
}
# Fixed numbers that keep the draws of one seed apart.
TOKENS, HEADS, NOISE, CHOICE = range(4)


class Decayed(eqx.Module):
    """e^{−εt} D(t)."""

    weights: Oscillating
    decay: Scalar

    def __call__(self, t: ScalarLike) -> TiedHeads:
        heads = self.weights(t)
        factor = jnp.exp(-self.decay * t).astype(heads.D.dtype)
        return eqx.tree_at(lambda heads: heads.D, heads, factor * heads.D)


def errors(spec: "WeightLimit", perturbation: str, level: int) -> Arrays:
    """The errors of every draw, by quantity; the limit is solved again, which costs less than to keep it."""
    size = spec.levels_of(perturbation)[level]
    h = spec.many if perturbation == "subsampling" else spec.heads
    start = draw_heads(fold(spec.seed, HEADS), h, spec.d, sign=spec.sign, scale=spec.scale, dtype=spec.dtype)
    limit = _follow(spec, start, phase_spread(h), 0.0)
    found = []
    for draw in range(spec.draws_of(perturbation)):
        phases, perturbed, decay = phase_spread(h), start, 0.0
        if perturbation == "initial_noise":
            perturbed = _shaken(start, jnp.asarray(size), fold(spec.seed, NOISE, draw))
        elif perturbation == "weight_decay":
            decay = size
        else:
            chosen = _chosen(fold(spec.seed, CHOICE, draw, level), h, round(size))
            perturbed, phases = Heads.tied(start.D[chosen], sign=spec.sign), phases[chosen]
        found.append(_gaps(limit, _follow(spec, perturbed, phases, decay), Sphere(spec.d)))
    return {name: np.array([gap[name] for gap in found]) for name in QUANTITIES}


@eqx.filter_jit
def _shaken(start: TiedHeads, size: Scalar, key: Key) -> TiedHeads:
    Z = jr.normal(key, start.D.shape, start.D.dtype)
    return Heads.tied(start.D + size.astype(Z.dtype) * (Z + jnp.swapaxes(Z, 1, 2)) / 2, sign=start.sign)


@functools.partial(jax.jit, static_argnames="many")
def _chosen(key: Key, many: int, kept: ScalarLike) -> Int[Array, "h"]:
    """`kept` of the heads, each as often as it takes to have `many` again: the same measure, and the same shapes."""
    return jr.randint(key, (many,), 0, many)[jnp.arange(many) % kept]


def _follow(spec: "WeightLimit", start: TiedHeads, phases: Float[Array, "h"], decay: float) -> dict[str, Array]:
    """Tokens, energy along the flow and energies of the test measures, at the recorded times."""
    sphere, ts = Sphere(spec.d), jnp.linspace(0.0, spec.T, spec.records)
    weights = Prescribed(Decayed(oscillating(start, phases, scale=spec.scale), jnp.asarray(decay)))
    flow = AttentionFlow(sphere, weights)
    x0 = jnp.asarray(sphere.uniform(fold(spec.seed, TOKENS), spec.n), spec.dtype)
    solution = solve(flow, x0, ts, dt=spec.dt, solver=Tsit5(), observe={"energy": Energy()})
    assert solution.states is not None
    test = _test_energies(flow, ts, trial_measures(sphere, x0))
    return {"distance": solution.states, "energy": solution.observed["energy"], "test_energy": test}


@eqx.filter_jit
def trial_measures(sphere: Sphere, x: Tokens) -> Float[Array, "m n d"]:
    """Clouds far from one another: uniform, one cluster, two opposite clusters, and a great circle."""
    pole = jnp.zeros_like(x[:1]).at[0, 0].set(1)
    opposite = jnp.where(jnp.arange(len(x)) % 2 == 0, 1, -1).astype(x.dtype)[:, None]
    circle = x.at[:, -1].set(0)
    clouds = (x, pole + 0.1 * x, opposite * pole + 0.1 * x, circle)
    return jnp.stack([sphere.retract(cloud) for cloud in clouds])


@eqx.filter_jit
def _test_energies(flow: AttentionFlow, ts: Times, clouds: Float[Array, "m n d"]) -> Float[Array, "t m"]:
    return jax.lax.map(lambda t: jax.lax.map(lambda x: Energy()(t, x, flow), clouds), ts)


def _gaps(limit: dict[str, Array], other: dict[str, Array], sphere: Sphere) -> dict[str, float]:
    """Suprema over the recorded times (and test measures) of what the perturbation changes."""
    apart = distances(limit["distance"], other["distance"], sphere)
    with np.errstate(invalid="ignore"):  # energies beyond the largest float are inf, and their difference NaN
        changes = {name: np.asarray(other[name]) - np.asarray(limit[name]) for name in ("energy", "test_energy")}
    return {name: float(np.abs(change).max()) for name, change in (changes | {"distance": np.asarray(apart)}).items()}
