"""Two clouds under the same weights part no faster than Grönwall's estimate allows (arXiv:2605.18870)."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .. import theory
from .._types import Times
from ..dynamics import AttentionFlow
from ..geometry import Sphere
from ..integrate import Tsit5, solve
from ..paths import AbstractPath
from ..transport import wasserstein
from .limits import rounding_conflict
from .moving_weights import KINDS, LABELS, dimension_conflict, draw_heads, fold, moving_weights
from .spec import Spec, at_least, one_of, option, positive, step_conflict
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

SIGNS = {"attracting": 1, "repelling": -1}
# Fixed numbers that keep the draws of one seed apart.
TOKENS, HEADS, PATHS, SHIFT, ORDER = range(5)
FINE = 20  # points per recorded interval at which the norm of the weights is taken
LONG_NAMES = {
    "growth": "W₂(μ_t, ν_t) / W₂(μ_0, ν_0)",
    "growth_bound": "exp ∫ C(Λ) dt, which the growth may not pass",
    "growth_rate": "log(growth)/t, the measured exponent",
    "growth_rate_bound": "(1/t) ∫ C(Λ) dt, the exponent of the estimate",
    "permutation_gap": "largest distance between permuted tokens and the permuted solution",
}


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class Stability(Spec):
    """Two clouds of `n` tokens, one a perturbation of the other, under the same moving heads, attracting or repelling.

    The second cloud is the first plus N(0, size²) per coordinate, renormalised, for every size in `sizes`. The
    tokens in another order, too, are followed under the same weights: they must give the same solution reordered.
    """

    kind: ClassVar[str] = "stability"

    d: int = option(3, at_least(2))
    n: int = option(50, at_least(2))
    heads: int = option(4, at_least(1))
    signs: tuple[str, ...] = option(tuple(SIGNS), one_of(*SIGNS))
    weights: tuple[str, ...] = option(("fixed", "oscillating_spread", "ou_smoothed"), one_of(*KINDS))
    scale: float = option(0.2, positive)  # of the weights: the estimate is of use for small norms alone
    sizes: tuple[float, ...] = option((0.001, 0.01, 0.1), positive)
    T: float = option(4.0, positive)
    records: int = option(41, at_least(2))
    step: float = option(0.05, positive)  # of Tsit5, and between the knots of OU weights

    def conflicts(self) -> Iterator[str]:
        yield from dimension_conflict(self.d, self.weights)
        yield from step_conflict("step", self.step, self.T, self.records)
        yield from rounding_conflict("sizes", self.sizes, self.dtype)

    @property
    def cases(self) -> list[tuple[str, str]]:
        return list(itertools.product(self.signs, self.weights))

    def units(self) -> list[Unit]:
        return [Unit("-".join(case), lambda _, case=case: _measure(self, *case), needs=()) for case in self.cases]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        units = {"units": "dimensionless"}
        dims = {
            "growth": ("case", "perturbation", "t"),
            "growth_bound": ("case", "t"),
            "growth_rate": ("case", "perturbation", "t"),
            "growth_rate_bound": ("case", "t"),
            "permutation_gap": ("case",),
        }
        stacked = {name: np.array([results["-".join(case)][name] for case in self.cases]) for name in dims}
        return xarray.Dataset(
            {name: (dims[name], stacked[name], units | {"long_name": LONG_NAMES[name]}) for name in dims},
            coords={
                "case": [f"{sign}, {LABELS[weights]}" for sign, weights in self.cases],
                "perturbation": ("perturbation", list(self.sizes), units | {"long_name": "size of the perturbation"}),
                "t": ("t", self.times(), units | {"long_name": "depth t"}),
            },
            attrs=self.about,
        )

    def times(self) -> np.ndarray:
        return np.linspace(0.0, self.T, self.records)


def _measure(spec: Stability, sign: str, kind: str) -> Arrays:
    sphere, ts = Sphere(spec.d), jnp.asarray(spec.times())
    start = draw_heads(fold(spec.seed, HEADS), spec.heads, spec.d, sign=SIGNS[sign], scale=spec.scale, dtype=spec.dtype)
    weights = moving_weights(kind, start, fold(spec.seed, PATHS), spec.T, scale=spec.scale, step=spec.step)
    flow = AttentionFlow(sphere, weights)
    x0 = jnp.asarray(sphere.uniform(fold(spec.seed, TOKENS), spec.n), spec.dtype)
    follow = lambda x: jnp.asarray(solve(flow, x, ts, dt=spec.step, solver=Tsit5()).states)
    x = follow(x0)
    order = jr.permutation(fold(spec.seed, ORDER), spec.n)
    gap = jnp.max(sphere.distance(follow(x0[order]), x[:, order]))
    shift = jr.normal(fold(spec.seed, SHIFT), x0.shape, spec.dtype)
    apart = np.array([distances(x, follow(sphere.retract(x0 + size * shift)), sphere) for size in spec.sizes])
    growth = apart / apart[:, :1]
    exponent = norm_exponent(weights, ts)
    later = np.where(ts > 0, ts, np.nan)
    with np.errstate(over="ignore"):  # beyond the largest float the estimate is inf
        return {
            "growth": growth,
            "growth_bound": np.exp(exponent),
            "growth_rate": np.log(growth) / later,
            "growth_rate_bound": exponent / later,
            "permutation_gap": np.asarray(gap),
        }


@eqx.filter_jit
def distances(xs: Float[Array, "t n d"], ys: Float[Array, "t n d"], manifold: Sphere) -> Times:
    """W_2 of the two clouds at every time; NaN where a solve ended early."""
    reached = jnp.all(jnp.isfinite(xs) & jnp.isfinite(ys), axis=(1, 2))
    xs, ys = (jnp.where(reached[:, None, None], clouds, clouds[0]) for clouds in (xs, ys))
    apart = jax.lax.map(lambda pair: wasserstein(pair[0], pair[1], manifold), (xs, ys))
    return jnp.where(reached, apart, jnp.nan)


def norm_exponent(weights: AbstractPath, ts: Times) -> np.ndarray:
    """∫ C(Λ_s) ds up to every time, with the norm of the heads on a grid that is finer by `FINE`."""
    fine = np.interp(np.arange((len(ts) - 1) * FINE + 1) / FINE, np.arange(len(ts)), ts)
    return np.asarray(_exponent(weights, jnp.asarray(fine)))[::FINE]


@eqx.filter_jit
def _exponent(weights: AbstractPath, ts: Times) -> Times:
    norms = jax.lax.map(lambda t: theory.largest_norm(weights(t).score), ts)
    return theory.gronwall_exponent(ts, norms)
