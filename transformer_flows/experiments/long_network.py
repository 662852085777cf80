"""Very deep networks without attention: one cluster, or two antipodal ones where the activation is odd."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .. import theory
from ..dynamics import Network
from ..observables import NematicOrder, OrderParameter
from .random_layers import ACTIVATIONS, attention_of, kernel_of, mlp_of, run_draws, seeds
from .spec import Spec, at_least, got, one_of, option, positive
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class LongNetwork(Spec):
    """`n` uniform tokens through `layers` layers of random MLPs alone, `draws` times for every activation.

    Recorded are the length of the mean token, the largest eigenvalue of the second moment, and the last tokens of the
    first draw. For ReLU in d = 4 and no bias λ_1 = −1/8: the distances fall like e^{−t/8}, so a depth of 20, as in the
    paper's figure, shows the clusters forming, and one of 60 shows them formed.
    """

    kind: ClassVar[str] = "long_network"

    n: int = option(64, at_least(2))
    d: int = option(4, at_least(2))
    activations: tuple[str, ...] = option(("relu", "tanh"), one_of(*ACTIVATIONS))
    bias: float = option(0.0, at_least(0))
    width: int = option(256, at_least(1))
    layers: int = option(6000, at_least(1))
    T: float = option(60.0, positive)
    record_every: int = option(60, at_least(1))
    draws: int = option(6, at_least(1))

    def conflicts(self) -> Iterator[str]:
        if self.layers % self.record_every:
            yield f"record_every: {got(self.record_every, f'a divisor of layers={self.layers}')}"

    def units(self) -> list[Unit]:
        return [Unit(name, lambda _, name=name: follow(self, name), needs=()) for name in self.activations]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        units = {"units": "dimensionless"}
        stacked = {name: np.array([results[a][name] for a in self.activations]) for name in ("order", "nematic", "end")}
        exponents = [float(theory.lyapunov_exponents(kernel_of(a, self.d, self.bias))[0]) for a in self.activations]
        return xarray.Dataset(
            {
                "order": (("activation", "draw", "t"), stacked["order"], units | {"long_name": "length of the mean"}),
                "nematic_order": (
                    ("activation", "draw", "t"),
                    stacked["nematic"],
                    units | {"long_name": "largest eigenvalue of the second moment"},
                ),
                "end": (("activation", "token", "axis"), stacked["end"], units | {"long_name": "tokens of draw 0"}),
                "largest_exponent": ("activation", np.array(exponents), units | {"long_name": "λ₁"}),
            },
            coords={
                "activation": list(self.activations),
                "t": ("t", np.linspace(0.0, self.T, self.layers // self.record_every + 1), units),
            },
            attrs=self.about,
        )


def follow(spec: LongNetwork, activation: str) -> Arrays:
    """The order parameters `(draw, t)`, and the last tokens of the first draw."""
    mlp = mlp_of(activation, spec.width, spec.d, spec.bias)
    network = Network(attention_of(spec.d, 1.0, 0.0), mlp, layers=spec.layers, horizon=spec.T)
    observe = {"order": OrderParameter(), "nematic": NematicOrder()}
    solution = run_draws(
        network, seeds(spec.seed, spec.draws), observe, n=spec.n, every=spec.record_every, dtype=spec.dtype
    )
    assert solution.states is not None
    observed = {name: np.asarray(value) for name, value in solution.observed.items()}
    return observed | {"end": np.asarray(solution.states)[0, -1]}
