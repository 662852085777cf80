"""Brownian motion in any tree of arrays."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PyTree, ScalarLike

from .._types import Key, Knots, TimesLike
from ._gauss_markov import gauss_markov
from ._increments import difference, float_dtype, zeros_like
from ._knots import float_leaves, line
from ._noise import DEPTH, clock, noise_times, regular_step, symmetrised
from ._path import AbstractPath, AbstractProcess, Increment
from .interpolated import Interpolated


class Brownian(AbstractProcess):
    """Independent standard Brownian motions in the entries of `like`, zero at time 0; ½(W + Wᵀ) for tied heads.

    `like` is any tree of floating arrays; its values do not matter, and `jax.ShapeDtypeStruct` will do. The noise
    lives on an absolute clock: interval k of length `unit` comes from the key folded with k and is halved `depth`
    times, linear below. Another `unit` is another path of the same key. Times that are multiples of unit/2^j cost j
    halvings only; traced times cost all of them. `unit` None is the step of the times on which it is drawn, which must
    then be regular.

    Raises `ValueError` for a `unit` that is not positive and finite, and for a `depth` outside of 0, …, 30.
    """

    like: PyTree
    unit: float | None = eqx.field(static=True)
    depth: int = eqx.field(static=True)

    def __init__(self, like: Any, *, unit: float | int | None = 1.0, depth: int = DEPTH):
        self.like = float_leaves(like)
        checked, self.depth = clock(1.0 if unit is None else unit, depth)
        self.unit = None if unit is None else checked

    def sample(self, key: Key, ts: TimesLike) -> "BrownianPath":
        ts = noise_times(ts)
        unit = regular_step(ts) if self.unit is None else self.unit
        noise = gauss_markov(key, self.like, ts, rate=jnp.zeros(()), unit=unit, depth=self.depth)
        rest = eqx.filter(self.like, _is_float, inverse=True)
        return BrownianPath(ts, symmetrised(eqx.combine(noise, rest)), cell=unit / 2**self.depth)


class BrownianPath(AbstractPath):
    """A drawn Brownian motion: its `values` at the knots `grid`, `(s, ...)`, joined by lines.

    Within a `cell` of its clock the motion is a line too, whatever the knots.
    """

    grid: Knots
    values: PyTree
    cell: float = eqx.field(static=True)

    def __init__(self, grid: Knots, values: PyTree, *, cell: float = 0.0):
        self.grid = grid
        self.values = values
        self.cell = cell

    @property
    def jumps(self) -> None:
        return None

    def __call__(self, t: ScalarLike) -> PyTree:
        return line(self.grid, self.values, t)

    def derivative(self, t: ScalarLike) -> None:
        return None

    def increment(self, t0: ScalarLike, t1: ScalarLike) -> Increment:
        change = difference(self(t1), self(t0))
        return Increment(zeros_like(change), change, jnp.subtract(t1, t0).astype(float_dtype(change)))

    def smoothed(self) -> Interpolated:
        """The same values with their lines taken as the path itself: finite variation, and no noise."""
        return Interpolated(self.grid, self.values)


def _is_float(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
