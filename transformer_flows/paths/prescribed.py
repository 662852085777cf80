"""A path given by a function of the user's own."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PyTree, ScalarLike

from .._types import Knots, Scalar, TimesLike, as_float
from ._increments import without_noise
from ._knots import knots
from ._path import AbstractPath, Increment


class Prescribed(AbstractPath):
    """`function(t)`, any tree, with its exact derivative; smooth unless `grid` or `jumps` say otherwise.

    Arrays that `function` depends on are parameters (they can be differentiated, and changed without a new trace)
    where it is an `eqx.Module` or an `eqx.Partial`. A plain function is part of the program: a new lambda for every
    call is compiled every time. At its `jumps` the function must be right-continuous.
    """

    function: Callable[[Scalar], PyTree]
    grid: Knots | None
    jumps: Knots | None

    def __init__(
        self,
        function: Callable[[Scalar], PyTree],
        *,
        grid: TimesLike | None = None,
        jumps: TimesLike | None = None,
    ):
        self.function = function
        self.grid = None if grid is None else knots(grid, "grid")
        self.jumps = None if jumps is None else knots(jumps, "jumps", least=0)

    def __call__(self, t: ScalarLike) -> PyTree:
        return self.function(as_float(t))

    def derivative(self, t: ScalarLike) -> PyTree:
        t = as_float(t)
        value, tangent = eqx.filter_jvp(self.function, (t,), (jnp.ones_like(t),))
        return eqx.combine(tangent, eqx.filter(value, eqx.is_inexact_array, inverse=True))

    def increment(self, t0: ScalarLike, t1: ScalarLike) -> Increment:
        return without_noise(self, t0, t1)
