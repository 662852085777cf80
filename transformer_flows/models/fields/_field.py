"""The contract of a random field: how an increment of its noise displaces the tokens."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
from jaxtyping import Array, PyTree

from ..._checks import refuse_other_type
from ..._types import Tokens


class AbstractField(eqx.Module):
    """A centred Gaussian field B(t, x) in R^d, Brownian in t, given by finitely many Brownian motions W.

    Called as `field(x, dw)` with tokens `(n, d)` and an increment of W, a tree like `like`; returns the increments of B
    at the tokens `(n, d)`, linear in `dw`. `first + second` is the sum of two independent fields.
    """

    d: eqx.AbstractVar[int]

    @property
    @abstractmethod
    def like(self) -> PyTree[Any]:
        """Shapes of W."""

    @property
    @abstractmethod
    def depends_smoothly(self) -> bool:
        """Whether dB is a smooth function of the tokens at fixed W, so that its Stratonovich integral has the law of B.

        Where it is not, the law is right at the start of a step alone, and only the Itô integral has it.
        """

    @abstractmethod
    def __call__(self, x: Tokens, dw: PyTree[Array]) -> Tokens:
        """The increment of the field at the tokens."""

    @abstractmethod
    def ito_drift(self, x: Tokens) -> Tokens:
        """What P_x ∘ dB is more than P_x dB on the sphere, per unit of time `(n, d)`.

        −½(d−1)k(1)x for an isotropic field of covariance k(⟨x, y⟩).
        """

    @abstractmethod
    def prepared(self) -> "AbstractField":
        """The same field, with everything computed that no token changes: a solve does that once."""

    def __add__(self, other: "AbstractField") -> "SumOfFields":
        return SumOfFields(self, other)


def refuse_other_shapes(field: AbstractField, x: Tokens, dw: Array) -> None:
    """Raise `ValueError` for tokens in another dimension than the field's, and increments of another shape."""
    if x.ndim != 2 or x.shape[1] != field.d:
        raise ValueError(f"the field is of tokens of shape (n, {field.d}); got {x.shape}.")
    if dw.shape != field.like.shape:
        raise ValueError(f"{type(field).__name__} takes increments of shape {field.like.shape}; got {dw.shape}.")


class SumOfFields(AbstractField):
    """The sum of two independent fields. Raises `ValueError` where they are in different dimensions."""

    first: AbstractField
    second: AbstractField

    def __init__(self, first: AbstractField, second: AbstractField):
        refuse_other_type(second, "second", AbstractField, "a random field such as IdiosyncraticField")
        if first.d != second.d:
            raise ValueError(f"fields in R^{first.d} and in R^{second.d} have no sum.")
        self.first = first
        self.second = second

    @property
    def d(self) -> int:
        return self.first.d

    @property
    def like(self):
        return self.first.like, self.second.like

    @property
    def depends_smoothly(self):
        return self.first.depends_smoothly and self.second.depends_smoothly

    def __call__(self, x, dw):
        return self.first(x, dw[0]) + self.second(x, dw[1])

    def ito_drift(self, x):
        return self.first.ito_drift(x) + self.second.ito_drift(x)

    def prepared(self):
        return SumOfFields(self.first.prepared(), self.second.prepared())
