"""A path that does not move."""

from typing import Any

from jaxtyping import PyTree, ScalarLike

from ._increments import without_noise, zeros_like
from ._knots import float_leaves
from ._path import AbstractPath, Increment


class Constant(AbstractPath):
    """`value`, any tree, at all times."""

    value: PyTree

    def __init__(self, value: Any):
        self.value = float_leaves(value)

    @property
    def grid(self) -> None:
        return None

    @property
    def jumps(self) -> None:
        return None

    def __call__(self, t: ScalarLike) -> PyTree:
        return self.value

    def derivative(self, t: ScalarLike) -> PyTree:
        return zeros_like(self.value)

    def increment(self, t0: ScalarLike, t1: ScalarLike) -> Increment:
        return without_noise(self, t0, t1)
