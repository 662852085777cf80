"""Rates and laws under common noise alone, measured on the flow and predicted from its kernel."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import theory
from ..theory import ActivationKernel
from .common_noise_rates_solve import exponents, gap_energies, kernel_of, pair_law, two_tokens
from .random_layers import ACTIVATIONS
from .spec import Spec, at_least, less_than, one_of, option, positive
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

QUANTILES = np.linspace(0.0, 1.0, 201)


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class CommonNoiseRates(Spec):
    """Tokens that common noise alone moves, `draws` times, against four predictions of the kernel.

    The Lyapunov spectrum by the linearised flow over a depth of `long`; the correlation of one token with its start;
    the cosine of two tokens that start orthogonal, whose law is that of a scalar equation (`samples` of it, compared by
    Kolmogorov and Smirnov's distance); and the mean gap energy of `n` uniform tokens, with its bound.
    """

    kind: ClassVar[str] = "common_noise_rates"

    d: int = option(5, at_least(2), less_than(44))
    activation: str = option("tanh", one_of(*ACTIVATIONS))
    weight: float = option(0.5, positive)  # σ_u²
    bias: float = option(0.4, at_least(0))
    beta: float = option(1.0, positive)
    n: int = option(16, at_least(2))
    T: float = option(4.0, positive)
    records: int = option(9, at_least(2))
    steps: int = option(50, at_least(1))  # between two records
    draws: int = option(400, at_least(2))
    samples: int = option(20000, at_least(2))
    long: float = option(60.0, positive)
    long_draws: int = option(24, at_least(2))

    @property
    def kernel(self) -> ActivationKernel:
        return kernel_of(self)

    @property
    def times(self) -> np.ndarray:
        return np.linspace(0.0, self.T, self.records)

    def units(self) -> list[Unit]:
        makers = {"pair": two_tokens, "law": pair_law, "gap": gap_energies, "spectrum": exponents}
        return [Unit(name, lambda _, make=make: make(self), needs=()) for name, make in makers.items()]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        units = {"units": "dimensionless"}
        kernel, t = self.kernel, self.times
        cosine, law = results["pair"]["cosine"], results["law"]["cosine"]
        gap, growth = results["gap"]["gap"], results["spectrum"]["exponents"]
        rate = float(theory.dissipation_rate(kernel, self.beta))
        name = lambda text: units | {"long_name": text}
        return xarray.Dataset(
            {
                "exponent": (("draw_long", "index"), growth, name("Lyapunov exponent")),
                "exponent_predicted": ("index", np.asarray(theory.lyapunov_exponents(kernel)), name("predicted λ_i")),
                "token_correlation": (("draw", "t"), results["pair"]["correlation"], name("⟨X_t, X_0⟩")),
                "token_correlation_predicted": ("t", np.asarray(theory.correlation(kernel, t)), name("its mean")),
                "pair_cosine": (("draw", "t"), cosine, name("cosine of two tokens")),
                "pair_cosine_law": (("quantile", "t"), np.quantile(law, QUANTILES, axis=0), name("quantile")),
                "pair_distance": ("t", kolmogorov_distances(cosine, law), name("Kolmogorov–Smirnov distance")),
                "pair_distance_critical": ((), critical_distance(self.draws, self.samples), name("at level 1/1000")),
                "noise_gap": (("draw", "t"), gap, name("gap energy")),
                "noise_gap_bound": ("t", gap[:, 0].mean() * np.exp(rate * t), name("bound of its mean")),
            },
            coords={
                "t": ("t", t, units),
                "index": ("index", np.arange(1, self.d), units),
                "quantile": ("quantile", QUANTILES, units),
            },
            attrs=self.about | {"pair_rate": float(theory.pair_rate(kernel)), "gap_rate_bound": rate},
        )


def kolmogorov_distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The largest difference of the two empirical distribution functions at every time after the start (there 0)."""
    import scipy.stats

    distances = [scipy.stats.ks_2samp(a, b)[0] for a, b in zip(first.T[1:], second.T[1:], strict=True)]
    return np.array([0.0, *distances])


def critical_distance(first: int, second: int, level: float = 1e-3) -> float:
    """The distance that samples of one law exceed with probability `level` (Smirnov's limit)."""
    return float(np.sqrt(-0.5 * np.log(level / 2) * (first + second) / (first * second)))
