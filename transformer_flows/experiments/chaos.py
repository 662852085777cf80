"""Propagation of chaos under common noise: how fast n tokens tend to very many, on one path of the noise."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..dynamics import CommonNoiseFlow
from ..geometry import Sphere
from ..integrate import solve
from ..models import GaussianField
from ..paths import realise
from ..theory import ActivationKernel
from ..transport import wasserstein
from .moving_weights import fold
from .power_law import fit_power_law
from .random_layers import ACTIVATIONS, attention_of
from .scaling import scaling_variables
from .spec import Spec, at_least, got, one_of, option, positive
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class Chaos(Spec):
    """sup over the records of W_2² between n and `many` uniform tokens on the same noise path, against n.

    The proved power of the mean is at most −1/2 for d < 4 and −2/d for d > 4. Each smaller cloud is counted often
    enough to have as many tokens as the large one, whose assignment is then exact.
    """

    kind: ClassVar[str] = "chaos"

    d: tuple[int, ...] = option((3, 6), at_least(2))
    n: tuple[int, ...] = option((8, 16, 32, 64, 128), at_least(1))
    many: int = option(1024, at_least(2))
    activation: str = option("tanh", one_of(*ACTIVATIONS))
    weight: float = option(0.5, positive)  # σ_u²
    bias: float = option(0.1, at_least(0))
    beta: float = option(1.0, positive)
    T: float = option(1.0, positive)
    records: int = option(5, at_least(2))
    steps: int = option(64, at_least(1))
    draws: int = option(8, at_least(1))

    def conflicts(self) -> Iterator[str]:
        if any(self.many % n for n in self.n):
            yield f"n: {got(list(self.n), f'divisors of many={self.many}')}"
        if self.steps % (self.records - 1):
            yield f"steps: {got(self.steps, f'a multiple of records - 1 = {self.records - 1}')}"

    def units(self) -> list[Unit]:
        return [
            Unit(f"d{d}-draw{draw}", lambda _, at=(d, draw): distances(self, *at), needs=())
            for d in self.d
            for draw in range(self.draws)
        ]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        levels = np.array(self.n, float)
        errors = np.array(
            [np.stack([results[f"d{d}-draw{k}"]["worst"] for k in range(self.draws)], axis=1) for d in self.d]
        )
        laws = [fit_power_law(levels, error, self.seed, paired=True) for error in errors]
        import xarray

        variables = scaling_variables(
            errors, np.tile(levels, (len(self.d), 1)), laws, [proved_power(d) for d in self.d], "number of tokens n"
        )
        return xarray.Dataset(
            variables, coords={"series": [f"W₂², proved at most: d = {d}" for d in self.d]}, attrs=self.about
        )


def proved_power(d: int) -> float:
    """The power of n in the bound of E sup W_2²; at d = 4 up to a logarithm."""
    return -0.5 if d <= 4 else -2 / d


def distances(spec: Chaos, d: int, draw: int) -> Arrays:
    """sup over the records of W_2² to the large cloud, for every n."""
    key = fold(spec.seed, d, draw)
    of_start, of_noise = jr.split(key)
    kernel = ActivationKernel(ACTIVATIONS[spec.activation], d, spec.weight, spec.bias**2, spec.bias**2)
    flow = CommonNoiseFlow(attention_of(d, spec.beta, 1.0), GaussianField(kernel))
    ts = jnp.linspace(0.0, spec.T, spec.steps + 1)
    drawn = realise(flow, of_noise, ts)
    x0 = Sphere(d).uniform(of_start, spec.many).astype(spec.dtype)
    records = ts[:: spec.steps // (spec.records - 1)]
    follow = lambda n: np.asarray(solve(drawn, x0[:n], records, dt=spec.T / spec.steps).states)
    large = follow(spec.many)
    return {"worst": np.array([_worst(follow(n), large, Sphere(d)) for n in spec.n])}


def _worst(small: np.ndarray, large: np.ndarray, sphere: Sphere) -> float:
    times = large.shape[1] // small.shape[1]
    apart = [wasserstein(np.repeat(x, times, axis=0), y, sphere) for x, y in zip(small, large, strict=True)]
    return float(max(apart)) ** 2
