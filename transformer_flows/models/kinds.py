"""Kinds of attention: what a head makes of the tilted sums."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .backends import AbstractBackend
from .masks import AbstractMask
from .measure import Measure


class AbstractKind(eqx.Module):
    """How a head averages the points that a query sees."""

    @abstractmethod
    def __call__(
        self,
        backend: AbstractBackend,
        queries: Float[Array, "h r d"],
        measure: Measure,
        mask: AbstractMask | None,
    ) -> Float[Array, "h r d"]:
        """The head's average of the attended points, before its value matrix. Zero for a query that sees none."""


class Softmax(AbstractKind):
    """Normalised attention: ∫ y e^{⟨Bx,y⟩} dμ / ∫ e^{⟨Bx,y⟩} dμ."""

    def __call__(self, backend, queries, measure, mask):
        return backend(queries, measure, measure.points, mask)[1]


class Unnormalised(AbstractKind):
    """Attention without the denominator: ∫ y e^{⟨Bx,y⟩} dμ. Overflows where the scores pass log(largest float)."""

    def __call__(self, backend, queries, measure, mask):
        log_mass, mean = backend(queries, measure, measure.points, mask)
        return jnp.exp(log_mass)[..., None] * mean


class Hardmax(AbstractKind):
    """The limit of infinite β: the mean of the points with the largest score (ties shared).

    The field jumps wherever another point takes the lead, so pass fixed steps (`dt`) to a solve: adaptive ones stall.
    """

    def __call__(self, backend, queries, measure, mask):
        return backend.peak(queries, measure, measure.points, mask)[1]
