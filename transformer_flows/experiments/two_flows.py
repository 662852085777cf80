"""The transformer's flow beside the exact gradient flow, from the same tokens under the same weights."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import numpy as np

from ..dynamics import AttentionFlow, MobilityFlow
from ..geometry import Sphere
from ..integrate import Tsit5, solve
from ..observables import Action, Dissipation, Energy, EnergyBalance, EnergySlope, Slope, TimeIntegral
from .moving_weights import KINDS, LABELS, dimension_conflict, draw_heads, either_sign, fold, moving_weights
from .spec import Spec, at_least, one_of, option, positive, step_conflict
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

FLOWS = {"attention": AttentionFlow, "mobility": MobilityFlow}
# Fixed numbers that keep the draws of one seed apart.
TOKENS, HEADS, PATHS = range(3)
CURVES = {
    "flow_dissipation": "S, the rate at which the motion lowers the energy",
    "flow_slope": "G², the squared metric derivative",
    "flow_energy_slope": "slope², the energy's squared slope",
    "flow_action": "∫∫ m|w|² dΘ dμ, the action of the heads one by one",
    "flow_energy": "interaction energy",
    "flow_balance_residual": "energy change that drift of the weights and dissipation do not explain",
    "flow_identity_residual": "E(t) − E(0) − ∫∂_tE + ½∫G² + ½∫slope², zero for a gradient flow that descends",
}


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class TwoFlows(Spec):
    """`n` uniform tokens under `AttentionFlow` and `MobilityFlow`, for several head counts.

    Smooth weights are solved with adaptive steps, unless `adaptive` is false. OU weights are joined by lines between
    knots every `step`, and each line is solved in `substeps` of Tsit5.
    """

    kind: ClassVar[str] = "two_flows"

    d: int = option(3, at_least(2))
    n: int = option(60, at_least(2))
    flows: tuple[str, ...] = option(tuple(FLOWS), one_of(*FLOWS))
    heads: tuple[int, ...] = option((1, 4), at_least(1))
    weights: str = option("oscillating_spread", one_of(*KINDS))
    scale: float = option(1.0, positive)  # of the weights
    sign: int = option(-1, either_sign)
    T: float = option(10.0, positive)
    records: int = option(201, at_least(2))
    step: float = option(0.05, positive)
    substeps: int = option(4, at_least(1))
    adaptive: bool = option(True)

    def conflicts(self) -> Iterator[str]:
        yield from dimension_conflict(self.d, [self.weights])
        if self.fixed:
            yield from step_conflict("step", self.step, self.T, self.records)

    @property
    def fixed(self) -> bool:
        """Whether steps are fixed."""
        return self.weights == "ou_smoothed" or not self.adaptive

    def units(self) -> list[Unit]:
        return [
            Unit(_name(*at), lambda _, at=at: _follow(self, *at), cost=at[1], needs=())
            for at in itertools.product(self.flows, self.heads)
        ]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        units = {"units": "dimensionless"}
        curves = {
            name: np.array([[results[_name(flow, heads)][name] for heads in self.heads] for flow in self.flows])
            for name in CURVES
        }
        return xarray.Dataset(
            {name: (("flow", "heads", "t"), curves[name], units | {"long_name": CURVES[name]}) for name in CURVES},
            coords={
                "flow": list(self.flows),
                "heads": list(self.heads),
                "t": ("t", self.times(), units | {"long_name": "depth t"}),
            },
            attrs=self.about | {"weights": LABELS[self.weights]},
        )

    def times(self) -> np.ndarray:
        return np.linspace(0.0, self.T, self.records)


def _follow(spec: TwoFlows, flow: str, heads: int) -> Arrays:
    """The curves of one flow; tokens and weights are the same for both."""
    sphere = Sphere(spec.d)
    x0 = jnp.asarray(sphere.uniform(fold(spec.seed, TOKENS), spec.n), spec.dtype)
    start = draw_heads(fold(spec.seed, HEADS, heads), heads, spec.d, sign=spec.sign, scale=spec.scale, dtype=spec.dtype)
    key = fold(spec.seed, PATHS, heads)
    weights = moving_weights(spec.weights, start, key, spec.T, scale=spec.scale, step=spec.step)
    dt = spec.step / spec.substeps if spec.fixed else None
    observe = {
        "flow_dissipation": Dissipation(),
        "flow_slope": Slope(),
        "flow_energy_slope": EnergySlope(),
        "flow_action": Action(),
        "flow_energy": Energy(),
        "balance": EnergyBalance(),
        "kinetic": TimeIntegral(Slope()),
        "potential": TimeIntegral(EnergySlope()),
    }
    motion = FLOWS[flow](sphere, weights)
    observed = solve(motion, x0, jnp.asarray(spec.times()), dt=dt, solver=Tsit5(), observe=observe).observed
    balance, half = observed["balance"], 0.5 * (observed["kinetic"] + observed["potential"])
    # of the gradient flow that descends; on the one that ascends the energy rises by the same amount
    identity = balance.energy_change - balance.weight_drift - spec.sign * half
    arrays = {name: np.asarray(observed[name]) for name in CURVES if name in observed}
    residuals = {"flow_balance_residual": balance.residual, "flow_identity_residual": identity}
    return arrays | {name: np.asarray(values) for name, values in residuals.items()}


def _name(flow: str, heads: int) -> str:
    return f"{flow}-heads{heads}"
