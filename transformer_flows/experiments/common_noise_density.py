"""The mean field under common noise on S¹: a random density, and tokens that follow it on the same path of noise."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .common_noise_density_solve import (
    QUANTITIES,
    density_at,
    density_flow,
    follow_density,
    noise_variance,
    token_errors,
)
from .power_law import fit_power_law
from .random_layers import ACTIVATIONS
from .scaling import scaling_variables
from .spec import Rule, Spec, at_least, one_of, option, positive, step_conflict
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

ANGLES = 192  # at which the density is shown


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class CommonNoiseDensity(Spec):
    """`CommonNoiseDensityFlow` from exp(strength·(x_1 + x_1 x_2)) on `paths` paths of the noise, and n tokens on each.

    The noise has the covariance of a random MLP with the scales of the paper, in modes up to `field_degree`; attention
    has B = βI and V = ±I, or is off. Tokens are drawn from the density at t = 0. Their errors are the largest over the
    recorded times: of the energy, and of the low moments. On the first path the density is shown, and the histogram of
    the most tokens. Both take the same steps `dt` of Heun's method, whose own error is common to them but for O(dt).
    T is short: noise and attention gather the density until no basis resolves it, and the highest degree grows by the
    steps themselves (`CommonNoiseDensityFlow`). `density_least` is above 0 while it is resolved.
    """

    kind: ClassVar[str] = "common_noise_density"

    degree: int = option(16, at_least(3))  # of the basis
    field_degree: int = option(6, at_least(1))
    activation: str = option("tanh", one_of(*ACTIVATIONS))
    bias: float = option(0.0, at_least(0))  # standard deviation of both biases
    attention: int = option(1, Rule("1, 0 or -1", lambda value: value in (1, 0, -1)))
    beta: float = option(1.0, positive)
    strength: float = option(0.25)
    T: float = option(0.5, positive)
    records: int = option(51, at_least(2))
    dt: float = option(0.0025, positive)
    n: tuple[int, ...] = option((100, 200, 400, 800, 1600, 3200), at_least(2))
    paths: int = option(8, at_least(1))
    bins: int = option(48, at_least(2))

    def conflicts(self) -> Iterator[str]:
        yield from step_conflict("dt", self.dt, self.T, self.records)

    def units(self) -> list[Unit]:
        density = Unit("density", lambda _: follow_density(self), needs=())
        tokens = [
            Unit(
                f"tokens-n{n}",
                lambda done, n=n: token_errors(self, n, done["density"]),
                cost=1 + (n // 400) ** 2,
                needs=("density",),
            )
            for n in self.n
        ]
        return [density, *tokens]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        units = {"units": "dimensionless"}
        followed, shown = results["density"], max(self.n)
        angle, bins = _centres(ANGLES), _centres(self.bins)
        states = followed["states"]
        tail = np.linalg.norm(states[..., density_flow(self).flow.basis.degrees == self.degree], axis=-1)
        change = states[..., 0] - 1
        worst = change[np.abs(change).argmax(axis=0), np.arange(self.records)]
        relative = units | {"long_name": "density relative to uniform"}
        return xarray.Dataset(
            {
                "noisy_density": (("t", "angle"), density_at(self, states[0], angle), relative),
                "noisy_tokens": (("t", "bin"), self._histogram(results[f"tokens-n{shown}"]), relative | {"n": shown}),
                "density_mass": ("t", 1 + worst, units | {"long_name": "mass, on the path where it is worst"}),
                "density_least": ("t", followed["least"].min(axis=0), units),
                "density_tail": ("t", (tail / np.linalg.norm(states, axis=-1)).max(axis=0), units),
                **self._convergence(results),
            },
            coords={
                "t": ("t", np.linspace(0.0, self.T, self.records), units),
                "angle": ("angle", angle, units),
                "bin": ("bin", bins, units | {"long_name": "angle"}),
                "series": list(QUANTITIES),
            },
            attrs=self.about | {"noise_variance": noise_variance(self)},
        )

    def _histogram(self, tokens: Arrays) -> np.ndarray:
        """The tokens' density relative to the uniform one, by bins of the angle `(t, bin)`."""
        place = np.floor((tokens["angle"] + np.pi) / (2 * np.pi) * self.bins).astype(int) % self.bins
        counts = np.array([np.bincount(row, minlength=self.bins) for row in place])
        return counts * self.bins / place.shape[1]

    def _convergence(self, results: Mapping[str, Arrays]) -> dict:
        errors = np.array([[results[f"tokens-n{n}"][name] for n in self.n] for name in QUANTITIES])
        levels = np.array(self.n, float)
        # the noise of a path is that of every n: its paths are drawn together
        laws = [fit_power_law(levels, error, self.seed, paired=True) for error in errors]
        shared = np.tile(levels, (len(errors), 1))
        return scaling_variables(errors, shared, laws, [-0.5] * len(errors), "number of tokens n")


def _centres(count: int) -> np.ndarray:
    """The middles of equal arcs from −π to π."""
    return 2 * np.pi * (np.arange(count) + 0.5) / count - np.pi
