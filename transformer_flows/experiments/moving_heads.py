"""Tokens under heads that move: the experiments of arXiv:2605.18870 on S^{d-1}."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from .moving_heads_data import moving_heads_dataset
from .moving_heads_solve import solve_chunk
from .spec import MOST_STEPS, Spec, at_least, got, one_of, option, positive, steps_in
from .unit import Arrays, Unit

if TYPE_CHECKING:
    import xarray

OSCILLATING_DIMENSIONS = (2, 3)
QUANTITIES = ("slope", "dissipation_rate", "energy", "balance", "clusters", "order_parameter", "diameter")


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class MovingHeads(Spec):
    """`n` tokens descend the energy of heads whose matrices follow an OU process or an oscillation.

    Several head counts make a sweep. `start` says around which points the tokens are drawn, with Gaussian noise
    `start_noise` per coordinate: the vertices ±e_i, or five equally spaced angles of the circle.
    """

    kind: ClassVar[str] = "moving_heads"

    d: int = option(3, at_least(2))
    n: int = option(200, at_least(2))
    start: str = option("cross_polytope", one_of("cross_polytope", "pentagon"))
    start_noise: float = option(0.05, at_least(0))
    heads: tuple[int, ...] = option((10,), at_least(1))
    weights: str = option("ou", one_of("ou", "oscillating"))
    phases: str = option("locked", one_of("locked", "spread"))  # of oscillating heads: all 0, or 2πh/H
    mean: float = option(1.0)  # times the identity; OU
    rate: float = option(1.0, positive)  # OU
    noise: float = option(math.sqrt(2), at_least(0))  # OU
    T: float = option(20.0, positive)
    dt: float = option(5e-3, positive)
    record_every: int = option(5, at_least(1))  # steps
    paths: int = option(10, at_least(1))
    chunks: int = option(1, at_least(1))  # pieces of [0, T], each saved when it is done
    frames: int = option(101, at_least(2))  # of the movie
    snapshots: tuple[float, ...] = option((0.0, 16.0, 18.0, 20.0), at_least(0), empty=True)
    settle: float = option(2.5, at_least(0))  # means are taken from here on
    radius: float = option(0.1, positive)  # tokens closer than this are one cluster
    quantities: tuple[str, ...] = option(QUANTITIES, one_of(*QUANTITIES))  # recorded: fewer compile faster

    @property
    def steps(self) -> int:
        return round(self.T / self.dt)

    @property
    def records(self) -> int:
        """Recorded times after the first."""
        return self.steps // self.record_every

    @property
    def record_step(self) -> float:
        return self.record_every * self.dt

    def conflicts(self) -> Iterator[str]:
        steps = steps_in(self.T, self.dt)
        if self.T / self.dt > MOST_STEPS:
            yield f"dt: {got(self.dt, f'at least {self.T / MOST_STEPS:g}, which makes {MOST_STEPS:g} steps')}"
        elif steps is None:
            yield f"dt: {got(self.dt, f'a number of which T={self.T} is a whole multiple')}"
        elif steps % self.record_every:
            yield f"record_every: {got(self.record_every, f'a divisor of the {steps} steps')}"
        elif (steps // self.record_every) % self.chunks:
            yield f"chunks: {got(self.chunks, f'a divisor of the {steps // self.record_every} recorded times')}"
        if self.settle >= self.T:
            yield f"settle: {got(self.settle, f'less than T={self.T}')}"
        if any(t > self.T or (t and steps_in(t, self.record_step) is None) for t in self.snapshots):
            allowed = f"multiples of record_every*dt={self.record_step:g} up to T={self.T}"
            yield f"snapshots: {got(list(self.snapshots), allowed)}"
        if self.start == "pentagon" and self.d != 2:
            yield f"start: {got(self.start, 'cross_polytope (a pentagon needs d=2)')}"
        if self.weights == "oscillating" and self.d not in OSCILLATING_DIMENSIONS:
            yield f"d: {got(self.d, 'one of 2, 3 for oscillating weights')}"
        if self.weights == "oscillating" and self.paths != 1:
            yield f"paths: {got(self.paths, '1 for oscillating weights, which are not random')}"

    def units(self) -> list[Unit]:
        return [
            Unit(unit_name(*at), functools.partial(self._compute, *at), cost=at[0], needs=_chunk_before(*at))
            for at in itertools.product(self.heads, range(self.paths), range(self.chunks))
        ]

    def _compute(self, heads: int, path: int, chunk: int, earlier: Mapping[str, Arrays]) -> Arrays:
        return solve_chunk(self, heads, path, chunk, before=earlier.get(unit_name(heads, path, chunk - 1)))

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        pieces = {
            (heads, path): [results[unit_name(heads, path, chunk)] for chunk in range(self.chunks)]
            for heads, path in itertools.product(self.heads, range(self.paths))
        }
        return moving_heads_dataset(self, pieces)


def unit_name(heads: int, path: int, chunk: int) -> str:
    """Also the name of the checkpoint."""
    return f"heads{heads}-path{path}-chunk{chunk}"


def _chunk_before(heads: int, path: int, chunk: int) -> tuple[str, ...]:
    """Paths are independent; a chunk starts where the one before it ended."""
    return (unit_name(heads, path, chunk - 1),) if chunk else ()
