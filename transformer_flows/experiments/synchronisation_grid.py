"""Deep transformers with random MLPs: which activations, widths of the embedding and biases synchronise the tokens."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from .. import theory
from ..dynamics import Network
from ..observables import GapEnergy
from .random_layers import ACTIVATIONS, attention_of, kernel_of, mlp_of, run_draws, sde_number, seeds
from .spec import Rule, Spec, at_least, got, one_of, option, positive
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

BINS = 80
# Above this the layers are no small steps of an SDE.
LARGEST_STEP = 0.3
PREDICTED = {
    "kernel": "k(1)",
    "kernel_slope": "k'(1)",
    "lyapunov": "largest Lyapunov exponent λ₁",
    "pair_rate": "rate λ̄ of the mean squared distance",
    "gap_rate_bound": "bound λ̄' of the rate of the mean gap energy",
    "step_size": "mean square of a layer's noise, (T/L)(d−1)k(1)",
}


class Case(NamedTuple):
    """One cell of the grid; `activation` "none" is a transformer without MLPs, whose bias does not matter."""

    activation: str
    d: int
    bias: float
    attention: int

    @property
    def name(self) -> str:
        return f"{self.activation}-d{self.d}-bias{self.bias!r}-attention{self.attention:+d}"


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class SynchronisationGrid(Spec):
    """`n` uniform tokens through `layers` layers with fresh random MLPs, for every case of a grid.

    The cases are activation × dimension × standard deviation of both biases × sign of the attention (B = βI,
    V = ±I, or none), and where `without_mlp` is true attention alone. Recorded are the gap energy E_β, the mean
    cosine of all pairs (a token with itself too), and how the cosines are distributed at the first, the middle and the
    last record. Set against them are k(1), k'(1), λ_1, λ̄ and the bound λ̄' of the kernel.
    """

    kind: ClassVar[str] = "synchronisation_grid"

    n: int = option(64, at_least(2))
    d: tuple[int, ...] = option((5, 64, 128), at_least(2))
    activations: tuple[str, ...] = option(("relu", "silu", "sigmoid", "tanh"), one_of(*ACTIVATIONS))
    bias: tuple[float, ...] = option((0.0, 0.1), at_least(0))
    attention: tuple[int, ...] = option((1, 0, -1), Rule("1, 0 or -1", lambda value: value in (1, 0, -1)))
    without_mlp: bool = option(True)
    beta: float = option(1.0, positive)
    width: int = option(512, at_least(1))
    layers: int = option(150, at_least(1))
    T: float = option(5.0, positive)
    record_every: int = option(5, at_least(1))
    draws: int = option(8, at_least(1))

    def conflicts(self) -> Iterator[str]:
        if self.layers % self.record_every:
            yield f"record_every: {got(self.record_every, f'a divisor of layers={self.layers}')}"

    @property
    def cases(self) -> list[Case]:
        grid = [Case(*case) for case in itertools.product(self.activations, self.d, self.bias, self.attention)]
        bare = [Case("none", d, 0.0, attention) for d in self.d for attention in self.attention]
        return grid + (bare if self.without_mlp else [])

    @property
    def records(self) -> int:
        return self.layers // self.record_every + 1

    def units(self) -> list[Unit]:
        return [
            Unit(case.name, lambda _, case=case: follow(self, case), cost=4 + case.d, needs=()) for case in self.cases
        ]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        units = {"units": "dimensionless"}
        cases, t = self.cases, np.linspace(0.0, self.T, self.records)
        stacked = {name: np.array([results[case.name][name] for case in cases]) for name in ("gap", "cosine", "share")}
        predicted = [_predicted(self, case) for case in cases]
        rows = {
            name: ("case", np.array([row[name] for row in predicted]), units | {"long_name": PREDICTED[name]})
            for name in PREDICTED
        }
        rates = [gap_rate(t, gap.mean(axis=0)) for gap in stacked["gap"]]
        return xarray.Dataset(
            {
                "gap": (("case", "draw", "t"), stacked["gap"], units | {"long_name": "gap energy E_β"}),
                "cosine": (("case", "draw", "t"), stacked["cosine"], units | {"long_name": "mean cosine"}),
                "cosine_share": (("case", "record", "bin"), stacked["share"], units | {"long_name": "share of pairs"}),
                "gap_rate": ("case", np.array(rates), units | {"long_name": "rate of the mean gap energy"}),
                **rows,
            },
            coords={
                "case": [case.name for case in cases],
                "activation": ("case", [case.activation for case in cases]),
                "d": ("case", [case.d for case in cases], units),
                "bias": ("case", [case.bias for case in cases], units),
                "attention": ("case", [case.attention for case in cases], units),
                "t": ("t", t, units),
                "record": ("record", t[histogram_records(self)], units),
                "bin": ("bin", (bin_edges()[1:] + bin_edges()[:-1]) / 2, units | {"long_name": "cosine"}),
            },
            attrs=self.about
            | {"beta": self.beta, "layers": self.layers, "width": self.width, "largest_step": LARGEST_STEP},
        )


def follow(spec: SynchronisationGrid, case: Case) -> Arrays:
    """Gap energies and mean cosines `(draw, t)`, and the shares of the cosines `(record, bin)` over all draws."""
    mlp = None if case.activation == "none" else mlp_of(case.activation, spec.width, case.d, case.bias)
    flow = attention_of(case.d, spec.beta, float(case.attention))
    network = Network(flow, mlp, layers=spec.layers, horizon=spec.T)
    observe = {"gap": GapEnergy(spec.beta)}
    solution = run_draws(
        network, seeds(spec.seed, spec.draws), observe, n=spec.n, every=spec.record_every, dtype=spec.dtype
    )
    x = np.asarray(solution.states)
    return {
        "gap": np.asarray(solution.observed["gap"]),
        "cosine": np.sum(x.mean(axis=2) ** 2, axis=-1),
        "share": np.array([_share(x[:, k]) for k in histogram_records(spec)]),
    }


def histogram_records(spec: SynchronisationGrid) -> list[int]:
    """The first, the middle and the last record."""
    return [0, (spec.records - 1) // 2, spec.records - 1]


def bin_edges() -> np.ndarray:
    """Of the cosines."""
    return np.linspace(-1.0, 1.0, BINS + 1)


def gap_rate(t: np.ndarray, mean_gap: np.ndarray) -> float:
    """The slope of log E_β over the second half of the depth; NaN where rounding has swallowed it."""
    late = t >= t[-1] / 2
    if not (mean_gap[late] > 1e-13).all():
        return float("nan")
    return float(np.polyfit(t[late], np.log(mean_gap[late]), 1)[0])


def _share(x: np.ndarray) -> np.ndarray:
    """The share of pairs of different tokens in each bin of cosines, for tokens (draw, n, d)."""
    pairs = np.triu_indices(x.shape[1], k=1)
    cosines = np.concatenate([(cloud @ cloud.T)[pairs] for cloud in x])
    counts, _ = np.histogram(np.clip(cosines, -1, 1), bin_edges())
    return counts / counts.sum()


def _predicted(spec: SynchronisationGrid, case: Case) -> dict[str, float]:
    """What the theory says of the case; of the rates only where there is an MLP, of λ̄' only where ε = 0."""
    if case.activation == "none":
        return dict.fromkeys(PREDICTED, float("nan"))
    kernel = kernel_of(case.activation, case.d, case.bias)
    # with attention of +I the energy does not grow along the attention flow either: ε = 0
    bound = theory.dissipation_rate(kernel, spec.beta) if case.attention >= 0 else float("nan")
    found = (
        kernel(1.0),
        kernel.derivative(1.0),
        theory.lyapunov_exponents(kernel)[0],
        theory.pair_rate(kernel),
        bound,
        sde_number(kernel, spec.T / spec.layers),
    )
    return dict(zip(PREDICTED, map(float, found), strict=True))
