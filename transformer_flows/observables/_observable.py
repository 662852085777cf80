"""The contracts of what is measured along a solve."""

from abc import abstractmethod
from typing import Generic, TypeVar

import equinox as eqx
from jaxtyping import Array, PyTree

from .._types import ScalarLike
from ..dynamics import AbstractFlow, AbstractMeasureFlow

Flow = TypeVar("Flow", bound=AbstractFlow)


def refuse_other_flow(observable: "AbstractObservable", flow: AbstractFlow) -> None:
    """Raise `ValueError` for a flow without heads, which has no interaction energy."""
    if not isinstance(flow, AbstractMeasureFlow):
        raise ValueError(
            f"{type(observable).__name__} needs a flow of attention heads, such as AttentionFlow; got "
            f"{type(flow).__name__}."
        )


class AbstractObservable(eqx.Module, Generic[Flow]):
    """A function of (t, x, flow) that a solve evaluates at the saved times; generic in the flow it needs.

    Values are floating arrays, so that times after an early end can hold NaN.
    """

    @abstractmethod
    def __call__(self, t: ScalarLike, x: PyTree[Array], flow: Flow) -> PyTree[Array]:
        """Value at time `t` and state `x`."""


class AbstractIntegral(AbstractObservable[Flow]):
    """An observable that the solver accumulates from the first time on.

    Its total is ∫ rate dt + Σ jump over the steps; `report` makes the observed value from it. Totals are additive: a
    solve in pieces gives the sum of the pieces' totals.
    """

    @abstractmethod
    def rate(self, t: ScalarLike, x: PyTree[Array], flow: Flow) -> PyTree[Array]:
        """What the solver integrates beside the state, at its own order; not part of its error estimate."""

    @abstractmethod
    def jump(
        self, t0: ScalarLike, t1: ScalarLike, x0: PyTree[Array], x1: PyTree[Array], flow: Flow
    ) -> PyTree[Array] | None:
        """What a whole step from (t0, x0) to (t1, x1) adds (Itô sums, jumps of the weights); None: nothing."""

    @abstractmethod
    def report(self, first: PyTree[Array], now: PyTree[Array], total: PyTree[Array]) -> PyTree[Array]:
        """The observed value, from the instantaneous values at the first time and now, and the total so far."""
