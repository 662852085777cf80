"""Does the motion end? Weights that come to rest, and weights that never do (arXiv:2605.18870)."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..dynamics import AttentionFlow
from ..geometry import Sphere
from ..integrate import Tsit5, solve
from ..models import Heads
from ..observables import EnergySlope, Slope, settling_time
from ..paths import AbstractPath, variation
from .moving_weights import LABELS, PHASES, RATE, calming_weights, draw_heads, either_sign, fold, moving_weights
from .spec import Rule, Spec, at_least, one_of, option, positive, step_conflict
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

CASES = {
    "ou_calming": "OU, noise dying away",
} | {name: LABELS[name] for name in PHASES}
# Fixed numbers that keep the draws of one seed apart.
TOKENS, HEADS, PATHS = range(3)
LONG_NAMES = {
    "settling_slope": "G², the squared metric derivative",
    "settling_energy_slope": "slope², the energy's squared slope under the heads of the moment",
    "settling_time": "first time from which G² stays below the tolerance over the window",
    "limit_slope": "slope² of the last tokens under the limit of the heads",
    "weight_variation": "∫ |D'| dt up to T over the root of the number of heads",
    "weight_variation_tail": "the same beyond T, estimated; inf: not integrable",
}


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class OmegaLimit(Spec):
    """`n` uniform tokens under weights whose evolution is integrable, and under two oscillations that are not.

    OU weights whose noise dies away like e^{−γt}, γ = `calming`, tend to the identity: the limits of the tokens are
    stationary points of its energy. Oscillating heads are not integrable. In phase they keep the tokens moving. With
    spread phases every head swings on but their measure hardly moves: G² becomes small, which integrability does not
    explain, and the energy's slope need not. The tokens settle at t if G² stays below `tolerance` over [t, t + window].
    """

    kind: ClassVar[str] = "omega_limit"

    cases: tuple[str, ...] = option(tuple(CASES), one_of(*CASES))
    n: int = option(40, at_least(2))
    d: int = option(3, Rule("2 or 3, for which the oscillation is known", lambda value: value in (2, 3)))
    heads: int = option(10, at_least(1))
    sign: int = option(-1, either_sign)
    calming: float = option(0.5, positive, Rule(f"at most {RATE:g}, the rate of the pull", lambda value: value <= RATE))
    T: float = option(30.0, positive)
    records: int = option(301, at_least(3))
    step: float = option(0.05, positive)  # of Tsit5, and between the knots of OU weights
    tolerance: float = option(1e-4, positive)
    window: float = option(2 * np.pi, at_least(0))

    def conflicts(self) -> Iterator[str]:
        yield from step_conflict("step", self.step, self.T, self.records)

    def units(self) -> list[Unit]:
        return [Unit(case, lambda _, case=case: _follow(self, case), needs=()) for case in self.cases]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        units = {"units": "dimensionless"}
        stacked = {name: np.array([results[case][name] for case in self.cases]) for name in LONG_NAMES}
        variables = {
            name: (("case", "t")[: values.ndim], values, units | {"long_name": LONG_NAMES[name]})
            for name, values in stacked.items()
        }
        integrable = np.isfinite(stacked["weight_variation_tail"])
        about = {"long_name": "whether the evolution of the weights is integrable"}
        return xarray.Dataset(
            variables | {"weights_integrable": ("case", integrable.astype(float), units | about)},
            coords={
                "case": [CASES[case] for case in self.cases],
                "t": ("t", self.times(), units | {"long_name": "depth t"}),
            },
            attrs=self.about | {"tolerance": self.tolerance, "window": self.window},
        )

    def times(self) -> np.ndarray:
        return np.linspace(0.0, self.T, self.records)


def _follow(spec: OmegaLimit, case: str) -> Arrays:
    sphere, ts = Sphere(spec.d), jnp.asarray(spec.times())
    weights = _weights(spec, case)
    x0 = jnp.asarray(sphere.uniform(fold(spec.seed, TOKENS), spec.n), spec.dtype)
    observe = {"settling_slope": Slope(), "settling_energy_slope": EnergySlope()}
    solution = solve(AttentionFlow(sphere, weights), x0, ts, dt=spec.step, solver=Tsit5(), observe=observe)
    moved = variation(weights, np.linspace(0.0, spec.T, 10 * spec.records))
    assert solution.states is not None
    arrays = {name: np.asarray(values) for name, values in solution.observed.items()}
    return arrays | {
        "settling_time": np.asarray(_settling_time(ts, arrays["settling_slope"], spec.tolerance, spec.window)),
        "limit_slope": np.asarray(_limit_slope(spec, case, solution.states[-1])),
        "weight_variation": np.array(moved.total / np.sqrt(spec.heads)),
        "weight_variation_tail": np.array(moved.tail / np.sqrt(spec.heads)),
    }


_settling_time = eqx.filter_jit(settling_time)  # one compiled call in place of many


def _weights(spec: OmegaLimit, case: str) -> AbstractPath:
    start = draw_heads(fold(spec.seed, HEADS), spec.heads, spec.d, sign=spec.sign, scale=1.0, dtype=spec.dtype)
    key = fold(spec.seed, PATHS)
    if case == "ou_calming":
        return calming_weights(start, key, spec.T, calming=spec.calming, step=spec.step)
    return moving_weights(case, start, key, spec.T, scale=1.0, step=spec.step)


def _limit_slope(spec: OmegaLimit, case: str, x) -> float:
    """The energy's squared slope at the last tokens under the heads' limit; NaN for weights that have none."""
    if case != "ou_calming":
        return np.nan
    limit = Heads.tied(jnp.eye(spec.d, dtype=spec.dtype), sign=spec.sign)
    slope = eqx.filter_jit(EnergySlope())
    return float(slope(jnp.asarray(spec.T), x, AttentionFlow(Sphere(spec.d), limit)))
