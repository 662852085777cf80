"""Weights that tend to a limit: energies and flows tend to those of the limit, at which power (arXiv:2605.18870)."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .moving_weights import either_sign
from .power_law import fit_power_law
from .scaling import scaling_variables
from .spec import Spec, at_least, got, less_than, option, positive, step_conflict
from .unit import Arrays, Unit
from .weight_limit_solve import QUANTITIES, errors

if TYPE_CHECKING:
    import xarray

PERTURBATIONS = {
    "initial_noise": "initial noise ε",
    "weight_decay": "weight decay ε",
    "subsampling": "subsampling K heads",
}
LEVELS = {"initial_noise": "size of the noise ε", "weight_decay": "rate of the decay ε", "subsampling": "heads kept K"}
POWERS = {"initial_noise": 1.0, "weight_decay": 1.0, "subsampling": -0.5}


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class WeightLimit(Spec):
    """`n` uniform tokens under oscillating heads (phases spread), and under the same heads perturbed.

    Noise ε·½(Z + Zᵀ) on the heads at t = 0, decay D^ε = e^{−εt}D, or K heads drawn from `many` with replacement. The
    errors are suprema over the recorded times: of W_2 between the two clouds, of the difference of their energies
    E(μ^ε_t; Θ^ε_t) − E(μ_t; Θ_t), and, over fixed test measures too, of E(μ; Θ^ε_t) − E(μ; Θ_t), whose uniform
    convergence is what Γ-convergence needs. T is moderate: near a separatrix no power would be seen.
    """

    kind: ClassVar[str] = "weight_limit"

    n: int = option(30, at_least(2))
    d: int = option(3, at_least(2), less_than(4))
    heads: int = option(8, at_least(1))  # under noise and decay
    many: int = option(256, at_least(2))  # of which K are drawn
    levels: tuple[float, ...] = option((1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2), positive)
    kept: tuple[int, ...] = option((2, 4, 8, 16, 32, 64, 128, 256), at_least(1))
    draws: int = option(6, at_least(1))
    sign: int = option(-1, either_sign)
    scale: float = option(0.5, positive)  # of the weights: e^{⟨x,Dx⟩} has heavy tails over large random heads
    T: float = option(2.0, positive)
    records: int = option(21, at_least(2))
    dt: float = option(0.05, positive)  # of Tsit5

    def conflicts(self) -> Iterator[str]:
        yield from step_conflict("dt", self.dt, self.T, self.records)
        if len(self.levels) != len(self.kept):
            yield f"kept: {got(list(self.kept), f'as many entries as levels, {len(self.levels)}')}"
        if any(self.many % kept for kept in self.kept):
            yield f"kept: {got(list(self.kept), f'divisors of many={self.many}')}"

    def levels_of(self, perturbation: str) -> tuple[float, ...]:
        return tuple(map(float, self.kept)) if perturbation == "subsampling" else self.levels

    def draws_of(self, perturbation: str) -> int:
        """Decay is not random."""
        return 1 if perturbation == "weight_decay" else self.draws

    def units(self) -> list[Unit]:
        return [
            Unit(
                f"{perturbation}-{k}",
                lambda _, at=(perturbation, k): errors(self, *at),
                cost=8 if perturbation == "subsampling" else 1,
                needs=(),
            )
            for perturbation, k in itertools.product(PERTURBATIONS, range(len(self.levels)))
        ]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        series = list(itertools.product(QUANTITIES, PERTURBATIONS))
        shape = (len(series), len(self.levels), self.draws)
        error, levels = np.full(shape, np.nan), np.empty(shape[:2])
        for i, (quantity, perturbation) in enumerate(series):
            drawn = np.array([results[f"{perturbation}-{k}"][quantity] for k in range(len(self.levels))])
            error[i, :, : drawn.shape[1]] = drawn
            levels[i] = self.levels_of(perturbation)
        laws = [
            fit_power_law(levels[i], error[i, :, : self.draws_of(perturbation)], self.seed)
            for i, (_, perturbation) in enumerate(series)
        ]
        names = [f"{QUANTITIES[quantity]}: {PERTURBATIONS[perturbation]}" for quantity, perturbation in series]
        expected = [POWERS[perturbation] for _, perturbation in series]
        return xarray.Dataset(
            scaling_variables(error, levels, laws, expected, [LEVELS[perturbation] for _, perturbation in series]),
            coords={"series": names, "level": np.arange(shape[1]), "draw": np.arange(self.draws)},
            attrs=self.about,
        )
