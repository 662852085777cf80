"""The contract of a path: a tree of arrays as a function of time, fixed before a solve begins."""

from abc import abstractmethod
from typing import Generic, NamedTuple

import equinox as eqx
from jaxtyping import PyTree, ScalarLike

from .._types import Key, Knots, Scalar, TimesLike, Tree


class Increment(NamedTuple):
    """Change of a path over a step, split: `drift` + `martingale` is path(t1) - path(t0).

    `variance` is the scalar v (g²Δt for noise of strength g) such that the martingale part has, in expectation,
    the covariance of √v times the path's unit noise; zero where there is none.
    """

    drift: PyTree
    martingale: PyTree
    variance: Scalar


class AbstractPath(eqx.Module, Generic[Tree]):
    """Weights, controls and noise as functions of time.

    `grid` holds the knots on which fixed steps are taken (None: smooth). `jumps` holds the discontinuities: steps
    end there, and values are right-continuous (None: continuous). A path with a grid is constant before its first
    knot and after its last one.
    """

    grid: eqx.AbstractVar[Knots | None]
    jumps: eqx.AbstractVar[Knots | None]

    @abstractmethod
    def __call__(self, t: ScalarLike) -> Tree:
        """Value at time `t`."""

    @abstractmethod
    def derivative(self, t: ScalarLike) -> Tree | None:
        """Time derivative, from the right at a knot; None for a path that moves by jumps or by noise alone."""

    @abstractmethod
    def increment(self, t0: ScalarLike, t1: ScalarLike) -> Increment:
        """Change over the step from `t0` to `t1`."""


class AbstractProcess(eqx.Module, Generic[Tree]):
    """A path not yet drawn."""

    @abstractmethod
    def sample(self, key: Key, ts: TimesLike) -> AbstractPath[Tree]:
        """The path of `key`, with knots `ts`. The same key gives the same path at any knots and any horizon."""
