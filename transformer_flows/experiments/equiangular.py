"""Tokens at equal angles keep them equal, so the whole flow is one scalar law for their cosine (arXiv:2312.10794)."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from .. import theory
from ..dynamics import AttentionFlow
from ..geometry import Sphere
from ..integrate import solve
from ..models import Heads, Softmax, Unnormalised
from .scalar_law import Law, follow, hitting_time, measured_hitting_time
from .spec import Spec, at_least, got, less_than, one_of, option, positive
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

KINDS = {"softmax": Softmax(), "unnormalised": Unnormalised()}
# Compiled: an integrator on the host calls them thousands of times, for one number each.
RATES = {
    "softmax": jax.jit(theory.equiangular_rate),
    "unnormalised": jax.jit(theory.equiangular_rate_unnormalised),
}


def scalar_law(law: str, beta: float, n: int) -> Law:
    """ρ' as a function of ρ, on the host."""
    return lambda rho: float(RATES[law](rho, beta, n))


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class Equiangular(Spec):
    """SA and USA from an equiangular start, against the scalar law, for several β."""

    kind: ClassVar[str] = "equiangular"

    laws: tuple[str, ...] = option(("softmax", "unnormalised"), one_of(*KINDS))
    n: int = option(32, at_least(2))
    beta: tuple[float, ...] = option((0.0, 0.5, 1.0, 2.0, 4.0), at_least(0))
    start: float = option(0.0, less_than(1))
    level: float = option(0.999, less_than(1))
    T: float = option(15.0, positive)
    records: int = option(1501, at_least(2))

    def conflicts(self) -> Iterator[str]:
        if self.start <= -1 / (self.n - 1):
            yield f"start: {got(self.start, f'more than -1/(n-1), the least common cosine of n={self.n} tokens')}"
        if self.level <= self.start:
            yield f"level: {got(self.level, f'more than start={self.start}')}"

    def units(self) -> list[Unit]:
        return [
            Unit(_name(law, beta), lambda _, law=law, beta=beta: _cosine(self, law, beta))
            for law in self.laws
            for beta in self.beta
        ]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        ts = np.linspace(0.0, self.T, self.records)
        grid = functools.partial(_grid, self)
        cosine = grid(lambda law, beta: results[_name(law, beta)]["cosine"])
        predicted = grid(lambda law, beta: follow(scalar_law(law, beta, self.n), self.start, ts))
        hit = grid(lambda law, beta: measured_hitting_time(ts, results[_name(law, beta)]["cosine"], self.level))
        hit_predicted = grid(lambda law, beta: hitting_time(scalar_law(law, beta, self.n), self.start, self.level))
        units = {"units": "dimensionless"}
        return xarray.Dataset(
            {
                "cosine": (("law", "beta", "t"), cosine, units),
                "cosine_predicted": (("law", "beta", "t"), predicted, units),
                "hitting_time": (("law", "beta"), hit, units | {"level": self.level}),
                "hitting_time_predicted": (("law", "beta"), hit_predicted, units | {"level": self.level}),
            },
            coords={"law": list(self.laws), "beta": ("beta", list(self.beta), units), "t": ("t", ts, units)},
            attrs={"title": self.title, "kind": self.kind, "source": self.source},
        )


def equiangular_tokens(n: int, rho: float) -> np.ndarray:
    """`n` unit vectors of R^n with common cosine ρ: the rows of a factor of their Gram matrix."""
    return np.linalg.cholesky((1 - rho) * np.eye(n) + rho)


def _cosine(spec: Equiangular, law: str, beta: float) -> Arrays:
    """Mean cosine over pairs, at the recorded times; its spread says whether the angles stayed equal."""
    x0 = jnp.asarray(equiangular_tokens(spec.n, spec.start), spec.dtype)
    flow = AttentionFlow(Sphere(spec.n), Heads.identity(spec.n, beta=beta), kind=KINDS[law])
    states = np.asarray(solve(flow, x0, jnp.linspace(0.0, spec.T, spec.records)).states)
    pairs = np.triu_indices(spec.n, k=1)
    return {"cosine": np.array([(x @ x.T)[pairs].mean() for x in states])}


def _grid(spec: Equiangular, value) -> np.ndarray:
    return np.array([[value(law, beta) for beta in spec.beta] for law in spec.laws])


def _name(law: str, beta: float) -> str:
    return f"{law}-beta{beta!r}"
