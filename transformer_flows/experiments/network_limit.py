"""Many layers and wide MLPs: how fast a network tends to the flow under common noise, on one path of the noise."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .network_limit_solve import follow_flow, follow_network, one_layer_errors, worst
from .power_law import fit_power_law
from .random_layers import ACTIVATIONS
from .scaling import scaling_variables
from .spec import Spec, at_least, got, less_than, one_of, option, positive
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class NetworkLimit(Spec):
    """Squared errors of networks of L layers and width m against the Stratonovich flow on the same noise path.

    Depth: the network whose MLPs are the increments of the Gaussian field itself, against the flow with `finest`
    steps. Width: the network whose MLPs have m hidden units, against the one of the field, with `layers` layers; given
    the hidden units the output is Gaussian with covariance K̂, and the increment of the field, of covariance K, is
    turned into it by K̂^{1/2}K^{-1/2}. One layer: E tr (K̂^{1/2} − K^{1/2})²/n. The table has both errors together.
    Errors are E sup_ℓ (1/n) Σ_i |X_i − X̄_i|² over `draws` noise paths.
    """

    kind: ClassVar[str] = "network_limit"

    n: int = option(8, at_least(2))
    d: int = option(3, at_least(2), less_than(4))
    activation: str = option("tanh", one_of(*ACTIVATIONS))
    weight: float = option(1.0, positive)  # σ_u²: at 1/d the noise of this small d would be weak
    bias: float = option(0.3, at_least(0))
    beta: float = option(1.0, positive)
    T: float = option(1.0, positive)
    depths: tuple[int, ...] = option((16, 32, 64, 128, 256), at_least(1))
    widths: tuple[int, ...] = option((16, 32, 64, 128, 256, 512), at_least(1))
    layers: int = option(64, at_least(1))
    finest: int = option(4096, at_least(2))
    draws: int = option(32, at_least(1))

    def conflicts(self) -> Iterator[str]:
        if any(self.finest % depth for depth in (*self.depths, self.layers)):
            yield f"depths: {got(list(self.depths), f'divisors of finest={self.finest}, as for layers')}"

    @property
    def networks(self) -> list[tuple[int, int | None]]:
        """Layers and width (None: the field itself) of all networks."""
        table = list(itertools.product(self.depths, (*self.widths, None)))
        return list(dict.fromkeys([*table, *itertools.product([self.layers], (*self.widths, None))]))

    def units(self) -> list[Unit]:
        networks = [
            Unit(f"L{L}-m{m}", lambda _, at=(L, m): follow_network(self, *at), cost=L, needs=())
            for L, m in self.networks
        ]
        flow = Unit("flow", lambda _: follow_flow(self), cost=self.finest, needs=())
        return [flow, *networks, Unit("one-layer", lambda _: one_layer_errors(self), needs=())]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        units = {"units": "dimensionless"}
        to_flow = {(L, m): worst(results["flow"], results[f"L{L}-m{m}"]) for L, m in self.networks}
        depth = np.array([to_flow[L, None] for L in self.depths])
        of_field = results[f"L{self.layers}-mNone"]
        along = np.array([worst(of_field, results[f"L{self.layers}-m{m}"]) for m in self.widths])
        one = np.array([results["one-layer"][f"m{m}"] for m in self.widths])
        series = {
            "squared error: number of layers L": (self.depths, depth),
            "squared error along the network: width m": (self.widths, along),
            "squared error of one layer: width m": (self.widths, one),
        }
        most = max(len(levels) for levels, _ in series.values())
        levels, errors = np.full((len(series), most), np.nan), np.full((len(series), most, self.draws), np.nan)
        laws = []
        for i, (of, error) in enumerate(series.values()):
            levels[i, : len(of)], errors[i, : len(of)] = of, error
            laws.append(fit_power_law(np.array(of, float), error, self.seed, paired=True))
        table = [[to_flow[L, m].mean() for m in (*self.widths, None)] for L in self.depths]
        return xarray.Dataset(
            scaling_variables(errors, levels, laws, [-1.0] * len(series), "number of layers or width")
            | {"limits": (("depth", "width"), np.array(table), units | {"long_name": "squared error"})},
            coords={
                "series": list(series),
                "depth": ("depth", list(self.depths), units | {"long_name": "layers L"}),
                "width": ("width", [*map(float, self.widths), np.inf], units | {"long_name": "width m"}),
            },
            attrs=self.about,
        )
