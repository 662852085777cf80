"""Proximal steps in the weighted Wasserstein distance: their order, and energies that never rise (arXiv:2605.18870)."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import numpy as np

from .._types import Tokens
from ..dynamics import MobilityFlow
from ..geometry import Sphere
from ..integrate import Solution, solve
from ..observables import Energy
from ..transport import jko_flow
from .moving_weights import LABELS, PHASES, dimension_conflict, draw_heads, fold, moving_weights
from .power_law import fit_power_law
from .scaling import UNITS, scaling_variables
from .spec import Spec, at_least, one_of, option, positive
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

# Fixed numbers that keep the draws of one seed apart.
TOKENS, HEADS, PATHS = range(3)
SMOOTH = ("fixed", *PHASES)


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class MinimisingMovements(Spec):
    """`jko_flow` of `n` uniform tokens that descend: against `MobilityFlow` as tau = T/count falls, and for long steps.

    The error is the root mean square geodesic distance of the tokens at T, for `draws` starts. For every tau in
    `long_steps` the energy under fixed heads is followed over as many steps as the shortest tau takes.
    """

    kind: ClassVar[str] = "minimising_movements"

    n: int = option(30, at_least(2))
    d: int = option(3, at_least(2))
    heads: int = option(4, at_least(1))
    weights: tuple[str, ...] = option(("fixed", "oscillating_spread"), one_of(*SMOOTH))
    scale: float = option(0.5, positive)  # of the weights
    T: float = option(1.0, positive)
    counts: tuple[int, ...] = option((8, 16, 32, 64, 128), at_least(1))
    draws: int = option(5, at_least(1))
    long_steps: tuple[float, ...] = option((0.1, 1.0, 10.0), positive)

    def conflicts(self) -> Iterator[str]:
        yield from dimension_conflict(self.d, self.weights)

    def units(self) -> list[Unit]:
        orders = [
            Unit(_name(*at), functools.partial(_errors, self, *at), cost=max(self.counts), needs=())
            for at in itertools.product(self.weights, range(self.draws))
        ]
        return [*orders, Unit("long", functools.partial(_energies, self), cost=max(self.counts), needs=())]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        taus = self.T / np.array(self.counts)
        error = np.array(
            [[results[_name(kind, draw)]["error"] for draw in range(self.draws)] for kind in self.weights]
        ).transpose(0, 2, 1)
        laws = [fit_power_law(taus, series, self.seed, paired=True) for series in error]
        energy = results["long"]["energy"]
        return xarray.Dataset(
            scaling_variables(error, np.tile(taus, (len(error), 1)), laws, [1.0] * len(error), "step τ")
            | {
                "step_energy": (("tau", "step"), energy, UNITS | {"long_name": "energy after each step, fixed heads"}),
                "step_rise": ("tau", np.diff(energy).max(axis=1), UNITS | {"long_name": "largest rise of the energy"}),
            },
            coords={
                "series": [f"distance from the flow: {LABELS[kind]}" for kind in self.weights],
                "level": np.arange(len(self.counts)),
                "draw": np.arange(self.draws),
                "tau": ("tau", list(self.long_steps), UNITS | {"long_name": "step τ"}),
                "step": np.arange(max(self.counts) + 1),
            },
            attrs=self.about,
        )


def _flow(spec: MinimisingMovements, kind: str) -> MobilityFlow:
    start = draw_heads(fold(spec.seed, HEADS), spec.heads, spec.d, sign=-1, scale=spec.scale, dtype=spec.dtype)
    weights = moving_weights(kind, start, fold(spec.seed, PATHS), spec.T, scale=spec.scale, step=spec.T)
    return MobilityFlow(Sphere(spec.d), weights)


def _start(spec: MinimisingMovements, draw: int) -> Tokens:
    return jnp.asarray(Sphere(spec.d).uniform(fold(spec.seed, TOKENS, draw), spec.n), spec.dtype)


def _errors(spec: MinimisingMovements, kind: str, draw: int, earlier: Mapping[str, Arrays]) -> Arrays:
    """Distance from the flow at T for every number of steps."""
    flow, x0 = _flow(spec, kind), _start(spec, draw)
    states = solve(flow, x0, jnp.array([0.0, spec.T])).states
    assert states is not None
    errors = []
    for count in spec.counts:
        steps = _steps(spec, flow, x0, spec.T / count).states
        assert steps is not None
        squares = flow.manifold.squared_distance(steps[count], states[-1])
        errors.append(float(jnp.sqrt(jnp.mean(squares))))
    return {"error": np.array(errors)}


def _energies(spec: MinimisingMovements, earlier: Mapping[str, Arrays]) -> Arrays:
    flow, x0 = _flow(spec, "fixed"), _start(spec, 0)
    return {"energy": np.array([_steps(spec, flow, x0, tau).observed["energy"] for tau in spec.long_steps])}


def _steps(spec: MinimisingMovements, flow: MobilityFlow, x0: Tokens, tau: float) -> Solution:
    """As many steps for every tau, so that all compile once."""
    return jko_flow(flow, x0, tau, max(spec.counts), observe={"energy": Energy()})


def _name(kind: str, draw: int) -> str:
    return f"{kind}-draw{draw}"
