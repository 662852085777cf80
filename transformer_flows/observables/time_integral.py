"""The time integral of another observable."""

from collections.abc import Callable

from jaxtyping import Array, PyTree

from .._types import ScalarLike
from ..dynamics import AbstractFlow
from ._observable import AbstractIntegral


class TimeIntegral(AbstractIntegral[AbstractFlow]):
    """∫ f dt from the first time on, accumulated by the solver at its own order; the shape is that of f's values.

    `TimeIntegral(Slope())`, for instance, is the action of the curve of measures, ∫ |μ'|² dt in W_{m,2}.
    """

    observable: Callable

    def __init__(self, observable: Callable):
        if isinstance(observable, AbstractIntegral | type) or not callable(observable):
            raise ValueError(
                f"observable must be one of a moment, such as Slope(), which can be integrated; got {observable!r:.80}."
            )
        self.observable = observable

    def __call__(self, t: ScalarLike, x: PyTree[Array], flow: AbstractFlow) -> None:
        return None

    def rate(self, t: ScalarLike, x: PyTree[Array], flow: AbstractFlow) -> PyTree[Array]:
        return self.observable(t, x, flow)

    def jump(self, t0: ScalarLike, t1: ScalarLike, x0: PyTree[Array], x1: PyTree[Array], flow: AbstractFlow) -> None:
        return None

    def report(self, first: None, now: None, total: PyTree[Array]) -> PyTree[Array]:
        return total
