"""When do tokens that start at random meet? The diagram over (t, β) of arXiv:2312.10794."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..dynamics import AttentionFlow
from ..geometry import Sphere
from ..integrate import solve
from ..models import Heads
from .equiangular import KINDS, scalar_law
from .limits import exponent_conflict
from .scalar_law import hitting_time
from .scaling import about
from .spec import Spec, at_least, less_than, one_of, option, positive
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class ClusteringDiagram(Spec):
    """Fraction of pairs of uniform tokens that have met by time t, and the time at which orthogonal tokens meet."""

    kind: ClassVar[str] = "clustering_diagram"

    law: str = option("softmax", one_of(*KINDS))
    n: int = option(32, at_least(2))
    d: tuple[int, ...] = option((8, 128, 1024), at_least(2))
    beta: tuple[float, ...] = option(tuple(0.5 * k for k in range(19)), at_least(0))
    level: float = option(0.999, positive, less_than(1))
    T: float = option(30.0, positive)
    records: int = option(121, at_least(2))
    draws: int = option(8, at_least(1))

    def conflicts(self) -> Iterator[str]:
        yield from exponent_conflict("beta", self.beta, self.dtype)

    def units(self) -> list[Unit]:
        return [
            Unit(_name(d, beta), lambda _, d=d, beta=beta: _clustered(self, d, beta))
            for d in self.d
            for beta in self.beta
        ]

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        import xarray

        clustered = np.array([[results[_name(d, beta)]["clustered"] for beta in self.beta] for d in self.d])
        # The scalar law knows n and β; that uniform tokens are nearly orthogonal is true for d large against n.
        predicted = [hitting_time(scalar_law(self.law, beta, self.n), 0.0, self.level) for beta in self.beta]
        settings = {"level": self.level, "draws": self.draws}
        return xarray.Dataset(
            {
                "clustered": (("d", "beta", "t"), clustered, about("share of pairs that have met") | settings),
                "clustering_time_predicted": (
                    ("d", "beta"),
                    np.tile(predicted, (len(self.d), 1)),
                    about("time at which orthogonal tokens meet, by the scalar law"),
                ),
            },
            coords={
                "d": ("d", list(self.d), about("dimension d")),
                "beta": ("beta", list(self.beta), about("inverse temperature β")),
                "t": ("t", np.linspace(0.0, self.T, self.records), about("depth t")),
            },
            attrs=self.about,
        )


def _clustered(spec: ClusteringDiagram, d: int, beta: float) -> Arrays:
    """Fraction of pairs with cosine at least `level`, at the recorded times, over the draws of the start."""
    space = min(d, spec.n)
    flow = AttentionFlow(Sphere(space), Heads.identity(space, beta=beta), kind=KINDS[spec.law])
    ts = jnp.linspace(0.0, spec.T, spec.records)
    pairs = np.triu_indices(spec.n, k=1)
    fractions = []
    for draw in range(spec.draws):
        states = np.asarray(solve(flow, _start(spec, d, draw), ts).states)
        met = np.array([(x @ x.T)[pairs] >= spec.level for x in states])
        fractions.append(met.mean(axis=1))
    return {"clustered": np.mean(fractions, axis=0)}


def _start(spec: ClusteringDiagram, d: int, draw: int):
    """Uniform tokens of R^d, in coordinates of their span where that is smaller.

    Scores are inner products and values are the tokens themselves, so the span never changes and the motion in an
    orthonormal basis of it is the same motion.
    """
    key = jr.fold_in(jr.fold_in(jr.key(spec.seed), d), draw)
    x = Sphere(d).uniform(key, spec.n)
    x = x if d <= spec.n else jnp.linalg.qr(x.T)[1].T
    return jnp.asarray(x, spec.dtype)


def _name(d: int, beta: float) -> str:
    return f"d{d}-beta{beta!r}"
