"""The mean field on S¹ and S²: how fast the uniform density breaks up, and how tokens approach a density."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .equiangular import KINDS
from .limits import exponent_conflict
from .mean_field_solve import QUANTITIES, follow_density, measured_rates, predicted_rates, token_errors
from .power_law import fit_power_law
from .scaling import about, scaling_variables
from .spec import Rule, Spec, at_least, got, one_of, option, positive
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

STEEPEST = 1.3  # above the largest value of x_1 + x_1 x_2, ¾√3
LABELS = {"W_2": "W₂"}


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class MeanField(Spec):
    """Heads βI with value I: `DensityFlow` against the theory of its linear part, and tokens against `DensityFlow`.

    Growth rates come from a solve that starts near the uniform density, up to degree `modes`, for all `laws` and
    `beta`. Then n tokens drawn from a density, proportional to exp(strength·(x_1 + x_1 x_2)) at t = 0, and the density
    itself, follow `flow_law` with `flow_beta` up to T, where their energies and low moments are compared, and on S¹
    the W_2 distance of the tokens to the quantiles of the density.
    """

    kind: ClassVar[str] = "mean_field"

    d: int = option(2, Rule("2 or 3", lambda value: value in (2, 3)))
    degree: int = option(32, at_least(2))  # of the basis
    laws: tuple[str, ...] = option(("softmax", "unnormalised"), one_of(*KINDS))
    beta: tuple[float, ...] = option((1.0, 4.0, 9.0), at_least(0))
    modes: int = option(8, at_least(1))
    flow_law: str = option("softmax", one_of(*KINDS))
    flow_beta: float = option(4.0, at_least(0))
    strength: float = option(1.0)
    T: float = option(0.5, positive)
    records: int = option(6, at_least(2))
    n: tuple[int, ...] = option((50, 100, 200, 400, 800), at_least(2))
    draws: int = option(16, at_least(1))

    def conflicts(self) -> Iterator[str]:
        if self.modes > self.degree:
            yield f"modes: {got(self.modes, f'at most degree={self.degree}')}"
        yield from exponent_conflict("beta", self.beta, self.dtype)
        yield from exponent_conflict("flow_beta", self.flow_beta, self.dtype)
        yield from exponent_conflict("strength", self.strength, self.dtype, factor=STEEPEST)

    @property
    def cases(self) -> list[tuple[str, float]]:
        return [(law, beta) for law in self.laws for beta in self.beta]

    @property
    def quantities(self) -> tuple[str, ...]:
        """What is compared: W_2 on the circle alone, where the quantiles of a density are known."""
        return QUANTITIES if self.d == 2 else QUANTITIES[:-1]

    def units(self) -> list[Unit]:
        rates = [
            Unit(f"rates-{law}-beta{beta!r}", lambda _, law=law, beta=beta: measured_rates(self, law, beta), needs=())
            for law, beta in self.cases
        ]
        density = Unit("density", lambda _: follow_density(self), needs=())
        tokens = [
            Unit(
                f"tokens-n{n}",
                lambda done, n=n: token_errors(self, n, done["density"]),
                cost=1 + n // 100,
                needs=("density",),
            )
            for n in self.n
        ]
        return [*rates, density, *tokens]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        resolution = {"degree": self.degree}
        measured = np.array([results[f"rates-{law}-beta{beta!r}"]["rate"] for law, beta in self.cases])
        predicted = np.array([predicted_rates(self, law, beta) for law, beta in self.cases])
        followed = results["density"]
        return xarray.Dataset(
            {
                "rate": (("case", "mode"), measured, about("growth rate, measured")),
                "rate_predicted": (("case", "mode"), predicted, about("growth rate of the linear theory")),
                "density": (("t", "node"), followed["density"], about("density relative to uniform") | resolution),
                "density_mass": ("t", followed["mass"], about("mass of the density")),
                "density_least": ("t", followed["least"], about("least density at the nodes")),
                "density_tail": ("t", followed["tail"], about("part of the highest degree in the density")),
                "node_x": (("node", "axis"), followed["nodes"], about("nodes of the quadrature")),
                **self._convergence(results),
            },
            coords={
                "case": [f"{law}, β = {beta:g}" for law, beta in self.cases],
                "mode": ("mode", np.arange(1, self.modes + 1), about("degree")),
                "t": ("t", np.linspace(0.0, self.T, self.records), about("depth t")),
                "series": [LABELS.get(name, name) for name in self.quantities],
            },
            attrs=self.about,
        )

    def _convergence(self, results: Mapping[str, Arrays]) -> dict:
        errors = np.array([[results[f"tokens-n{n}"][name] for n in self.n] for name in self.quantities])
        levels = np.array(self.n, float)
        laws = [fit_power_law(levels, error, self.seed) for error in errors]
        shared = np.tile(levels, (len(errors), 1))
        return scaling_variables(errors, shared, laws, [-0.5] * len(errors), "number of tokens n")
