"""Flows that move by noise: the type says in which sense their equation is meant."""

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, PyTree

from .._types import ScalarLike
from ..paths import AbstractPath, AbstractProcess
from ._flow import AbstractFlow


class AbstractNoisyFlow(AbstractFlow):
    """dx = flow(t, x) dt + diffusion(t, x, dW): called as a flow it is its drift."""

    noise: eqx.AbstractVar[AbstractPath | AbstractProcess]

    @property
    @abstractmethod
    def quiet(self) -> AbstractFlow:
        """The flow without its noise."""

    @abstractmethod
    def diffusion(self, t: ScalarLike, x: PyTree[Array], dw: PyTree[Array]) -> PyTree[Array]:
        """The displacement of the state by an increment of the noise, tangent and linear in `dw`."""

    @abstractmethod
    def prepared(self) -> "AbstractNoisyFlow":
        """The same flow, with everything computed that no state changes: a solve does that once."""


class AbstractStratonovichFlow(AbstractNoisyFlow):
    """dx = flow dt + diffusion ∘ dW in the sense of Stratonovich: the limit of smooth noise."""

    @property
    @abstractmethod
    def only_ito(self) -> str:
        """Why the noise cannot be integrated in this sense; empty where it can."""


class AbstractItoFlow(AbstractNoisyFlow):
    """dx = flow dt + diffusion dW in the sense of Itô, whose increments are taken at the start of every step."""
