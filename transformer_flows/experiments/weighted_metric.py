"""The Wasserstein distance weighted by the heads: between its bounds, and converging in slices (arXiv:2605.18870)."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.integrate

from .. import theory
from ..dynamics import AttentionFlow
from ..geometry import Sphere
from ..models import TiedHeads
from ..transport import weighted_distance
from .limits import exponent_conflict
from .moving_weights import draw_heads, fold
from .power_law import fit_power_law
from .scaling import UNITS, scaling_variables
from .spec import Spec, at_least, option, positive
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

# Fixed numbers that keep the draws of one seed apart.
CLOUDS, HEADS, CIRCLE = range(3)
ARC = (0.2, 2.2)  # of the token on the circle, in radians
NAMES = ("value", "lower", "upper")
LONG_NAMES = {
    "distance_value": "W_{m,2} of two clouds, the length of the best path found",
    "distance_lower": "e^{−Λ/2} W₂",
    "distance_upper": "e^{Λ/2} W₂",
}


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class WeightedMetric(Spec):
    """W_{m,2} of two clouds of `n` uniform tokens under heads of growing norm Λ, and its error against the slices.

    The error is measured for one token on the circle, whose distance is a line integral, and for the clouds by the
    change when the slices are doubled.
    """

    kind: ClassVar[str] = "weighted_metric"

    n: int = option(30, at_least(1))
    d: int = option(3, at_least(2))
    heads: int = option(3, at_least(1))
    norms: tuple[float, ...] = option((0.0, 0.5, 1.0, 2.0, 3.0, 4.0), at_least(0))
    slices: tuple[int, ...] = option((4, 8, 16, 32), at_least(2))
    norm_of_slices: float = option(1.0, positive)  # at which the error is measured
    draws: int = option(4, at_least(1))

    def conflicts(self) -> Iterator[str]:
        yield from exponent_conflict("norms", self.norms, self.dtype)
        yield from exponent_conflict("norm_of_slices", self.norm_of_slices, self.dtype)

    def units(self) -> list[Unit]:
        return [
            Unit(f"{name}-{draw}", lambda _, measure=measure, draw=draw: measure(self, draw), needs=())
            for name, measure in MEASURED.items()
            for draw in range(self.draws)
        ]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        stacked = lambda unit, name: np.array([results[f"{unit}-{draw}"][name] for draw in range(self.draws)]).T
        error = np.array([stacked(unit, "error") for unit in ("circle", "clouds")])
        levels = np.tile(np.array(self.slices, float), (2, 1))
        laws = [fit_power_law(levels[0], series, self.seed, paired=True) for series in error]
        distances = {
            f"distance_{name}": (
                ("norm", "draw"),
                stacked("bounds", name),
                UNITS | {"long_name": LONG_NAMES[f"distance_{name}"]},
            )
            for name in NAMES
        }
        return xarray.Dataset(
            scaling_variables(error, levels, laws, [-2.0, -2.0], "slices K") | distances,
            coords={
                "series": ["error: one token on the circle", "change when K is doubled: clouds"],
                "level": np.arange(len(self.slices)),
                "draw": np.arange(self.draws),
                "norm": ("norm", list(self.norms), UNITS | {"long_name": "largest operator norm Λ of the heads"}),
            },
            attrs=self.about,
        )


def _heads(spec: WeightedMetric, d: int, norm: float, *key: int) -> TiedHeads:
    """Random heads, the largest of which has the norm."""
    heads = draw_heads(fold(spec.seed, *key), spec.heads, d, sign=-1, scale=1.0, dtype=spec.dtype)
    return TiedHeads(heads.D * (norm / theory.largest_norm(heads.D)), sign=-1)


def _pair(spec: WeightedMetric, draw: int):
    sphere = Sphere(spec.d)
    return (jnp.asarray(sphere.uniform(fold(spec.seed, CLOUDS, draw, k), spec.n), spec.dtype) for k in range(2))


def distances(spec: WeightedMetric, draw: int) -> Arrays:
    """The distance of two clouds and its bounds, for every norm of the heads."""
    x, y = _pair(spec, draw)
    found = [
        weighted_distance(x, y, _heads(spec, spec.d, norm, HEADS, draw), Sphere(spec.d), slices=max(spec.slices))
        for norm in spec.norms
    ]
    return {name: np.array([getattr(distance, name) for distance in found]) for name in NAMES}


def doubling(spec: WeightedMetric, draw: int) -> Arrays:
    """Change of the distance when the slices are doubled, for every number of slices."""
    x, y = _pair(spec, draw)
    heads = _heads(spec, spec.d, spec.norm_of_slices, HEADS, draw)
    counts = sorted({*spec.slices, *(2 * k for k in spec.slices)})
    value = {k: float(weighted_distance(x, y, heads, Sphere(spec.d), slices=k).value) for k in counts}
    return {"error": np.array([value[k] - value[2 * k] for k in spec.slices])}


def circle(spec: WeightedMetric, draw: int) -> Arrays:
    """Distance of two tokens on the circle minus its line integral, for every number of slices."""
    heads = _heads(spec, 2, spec.norm_of_slices, CIRCLE, draw)
    start, end = (jnp.asarray([[np.cos(angle), np.sin(angle)]], spec.dtype) for angle in ARC)
    values = [float(weighted_distance(start, end, heads, Sphere(2), slices=k).value) for k in spec.slices]
    return {"error": np.array(values) - _line_integral(heads)}


MEASURED = {"bounds": distances, "circle": circle, "clouds": doubling}


def _line_integral(heads: TiedHeads) -> float:
    """∫ √b̂ dθ over the arc: one token carries its own mobility with it."""
    flow = AttentionFlow(Sphere(2), heads)
    mobility = eqx.filter_jit(lambda x: flow.mass(heads, flow.measure(x)).effective_mobility[0])

    def integrand(angle: float) -> float:
        return float(mobility(jnp.asarray([[np.cos(angle), np.sin(angle)]], heads.D.dtype))) ** 0.5

    return scipy.integrate.quad(integrand, *ARC, epsabs=1e-12, epsrel=1e-12)[0]
