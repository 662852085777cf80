"""Tokens at equal angles keep them equal, so the whole flow is one scalar law for their cosine (arXiv:2312.10794)."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .. import theory
from .._types import Tokens
from ..dynamics import AttentionFlow
from ..geometry import Sphere
from ..integrate import solve
from ..models import Heads, Softmax, Unnormalised
from .limits import exponent_conflict
from .scalar_law import Law, bracket, follow, hitting_time, interpolated_hitting_time
from .scaling import about
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
    records: int = option(301, at_least(2))

    def conflicts(self) -> Iterator[str]:
        if self.start <= -1 / (self.n - 1):
            yield f"start: {got(self.start, f'more than -1/(n-1), the least common cosine of n={self.n} tokens')}"
        if self.level <= self.start:
            yield f"level: {got(self.level, f'more than start={self.start}')}"
        yield from exponent_conflict("beta", self.beta, self.dtype)

    def units(self) -> list[Unit]:
        return [
            Unit(_name(law, beta), lambda _, law=law, beta=beta: _measure(self, law, beta))
            for law in self.laws
            for beta in self.beta
        ]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        ts = np.linspace(0.0, self.T, self.records)
        grid = functools.partial(_grid, self)
        cosine = grid(lambda law, beta: results[_name(law, beta)]["cosine"])
        predicted = grid(lambda law, beta: follow(scalar_law(law, beta, self.n), self.start, ts))
        hit = grid(lambda law, beta: results[_name(law, beta)]["hitting_time"])
        hit_predicted = grid(lambda law, beta: hitting_time(scalar_law(law, beta, self.n), self.start, self.level))
        level = {"level": self.level}
        return xarray.Dataset(
            {
                "cosine": (("law", "beta", "t"), cosine, about("mean cosine of two tokens")),
                "cosine_predicted": (("law", "beta", "t"), predicted, about("cosine ρ of the scalar law")),
                "hitting_time": (("law", "beta"), hit, about("time at which the cosine reaches its level") | level),
                "hitting_time_predicted": (("law", "beta"), hit_predicted, about("the same by the scalar law") | level),
            },
            coords={
                "law": list(self.laws),
                "beta": ("beta", list(self.beta), about("inverse temperature β")),
                "t": ("t", ts, about("depth t")),
            },
            attrs=self.about,
        )


def equiangular_tokens(n: int, rho: float) -> np.ndarray:
    """`n` unit vectors of R^n with common cosine ρ: the rows of a factor of their Gram matrix."""
    return np.linalg.cholesky((1 - rho) * np.eye(n) + rho)


def _measure(spec: Equiangular, law: str, beta: float) -> Arrays:
    """Mean cosine over pairs at the recorded times, and the time at which it reaches the level."""
    flow = AttentionFlow(Sphere(spec.n), Heads.identity(spec.n, beta=beta), kind=KINDS[law])
    x0 = jnp.asarray(equiangular_tokens(spec.n, spec.start), spec.dtype)
    ts = np.linspace(0.0, spec.T, spec.records)
    states, cosine = _follow_tokens(flow, x0, ts)
    fine, fine_cosine = ts, cosine
    k = bracket(cosine, spec.level)
    if k is not None:
        # Between two records the cosine may come all the way: follow the tokens once more from the first of them.
        fine = np.linspace(ts[k], ts[k + 1], spec.records)
        fine_cosine = _follow_tokens(flow, states[k], fine)[1]
    hit = interpolated_hitting_time(fine, fine_cosine, spec.level)
    return {"cosine": cosine, "hitting_time": np.array(hit)}


def _follow_tokens(flow: AttentionFlow, x0: Tokens, ts: np.ndarray) -> tuple[Array, np.ndarray]:
    states = solve(flow, x0, jnp.asarray(ts)).states
    assert states is not None
    pairs = np.triu_indices(x0.shape[0], k=1)
    return states, np.array([(x @ x.T)[pairs].mean() for x in np.asarray(states)])


def _grid(spec: Equiangular, value) -> np.ndarray:
    return np.array([[value(law, beta) for beta in spec.beta] for law in spec.laws])


def _name(law: str, beta: float) -> str:
    return f"{law}-beta{beta!r}"
