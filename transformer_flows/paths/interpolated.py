"""Values at knots joined by straight lines."""

from jaxtyping import PyTree, ScalarLike

from .._types import Knots, TimesLike
from ._increments import without_noise
from ._knots import knots, leading, line, slope
from ._path import AbstractPath, Increment


class Interpolated(AbstractPath):
    """Piecewise-linear path through `values` at the knots `grid`, `(s,)`.

    `values` is any tree whose arrays have a leading axis of s. Constant outside of the knots. At the last knot the
    derivative is that of the last interval. Raises `ValueError` for knots that do not increase strictly or are not
    finite, and for values of another length.
    """

    grid: Knots
    values: PyTree

    def __init__(self, grid: TimesLike, values: PyTree):
        self.grid = knots(grid, "grid")
        self.values = leading(values, self.grid.shape[0], "one value per knot of grid")

    @property
    def jumps(self) -> None:
        return None

    def __call__(self, t: ScalarLike) -> PyTree:
        return line(self.grid, self.values, t)

    def derivative(self, t: ScalarLike) -> PyTree:
        return slope(self.grid, self.values, t)

    def increment(self, t0: ScalarLike, t1: ScalarLike) -> Increment:
        return without_noise(self, t0, t1)
