"""Which keys a query may see."""

import functools
import operator
from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Int

from .._types import Valid


class AbstractMask(eqx.Module):
    """A predicate on (query index, key index); the two broadcast. `a & b` allows what both allow.

    `existing` says which tokens there are at all (None: every one); the others neither move nor carry mass.
    """

    existing: eqx.AbstractVar[Valid | None]

    @abstractmethod
    def __call__(self, query: Int[Array, "*#batch"], key: Int[Array, "*#batch"]) -> Bool[Array, "*#batch"]:
        """Whether the query may see the key."""

    def __and__(self, other: "AbstractMask") -> "AbstractMask":
        return Both(self, other)  # pyright: ignore[reportCallIssue]  # `existing` is a property there, no field


class Causal(AbstractMask):
    """Token i sees tokens 0..i (arXiv:2411.04990)."""

    @property
    def existing(self) -> None:
        return None

    def __call__(self, query, key):
        return key <= query


class Padding(AbstractMask):
    """Only tokens marked valid exist: the others are seen by nobody, do not move, and get zero gradients.

    `existing` is `(n,)`, of truth values. Raises `ValueError` for anything else.
    """

    existing: Valid

    def __init__(self, existing: ArrayLike):
        existing = jnp.asarray(existing)
        if existing.ndim != 1 or existing.dtype != bool:
            raise ValueError(
                f"existing must be one truth value per token, (n,); got {existing.dtype} of shape {existing.shape}."
            )
        self.existing = existing

    def __call__(self, query, key):
        return self.existing[query] & self.existing[key]


class Both(AbstractMask):
    """What two masks both allow."""

    first: AbstractMask
    second: AbstractMask

    @property
    def existing(self) -> Valid | None:
        parts = [m.existing for m in (self.first, self.second) if m.existing is not None]
        return None if not parts else functools.reduce(operator.and_, parts)

    def __call__(self, query, key):
        return self.first(query, key) & self.second(query, key)
