"""One value per layer, held until the next layer begins."""

from jaxtyping import PyTree, ScalarLike

from .._types import Knots, TimesLike
from ._increments import without_noise
from ._knots import interval, knots, leading, map_floats
from ._path import AbstractPath, Increment


class PiecewiseConstant(AbstractPath):
    """`values[k]` on [grid[k], grid[k+1]): a network whose layer k begins at grid[k].

    `grid`, `(s,)` with s >= 2, holds the ends of the s - 1 layers, and `values` is any tree whose arrays have a
    leading axis of s - 1; `jax.vmap(Heads)(scores, values)` makes heads of matrices `(s-1, h, d, d)`.
    Right-continuous; it jumps at the interior knots, and holds the first and the last value outside of them. Raises
    `ValueError` as `Interpolated` does.
    """

    grid: Knots
    values: PyTree

    def __init__(self, grid: TimesLike, values: PyTree):
        self.grid = knots(grid, "grid", least=2)
        self.values = leading(values, self.grid.shape[0] - 1, "one value per interval of grid")

    @property
    def jumps(self) -> Knots:
        return self.grid[1:-1]

    def __call__(self, t: ScalarLike) -> PyTree:
        k = interval(self.grid, t)
        return map_floats(lambda v: v[k], self.values)

    def derivative(self, t: ScalarLike) -> None:
        return None

    def increment(self, t0: ScalarLike, t1: ScalarLike) -> Increment:
        return without_noise(self, t0, t1)
