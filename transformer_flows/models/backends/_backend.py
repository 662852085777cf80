"""The contract of a backend: exponentially tilted sums over the attended points, and nothing else."""

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float

from ..masks import AbstractMask
from ..measure import Measure


class AbstractBackend(eqx.Module):
    """Computes, for every query q and a measure Σ_j w_j δ_{y_j}, the tilt e^{⟨q, y⟩}.

    Drift, energies, mobilities, moments and distances of the whole library are built on this one sum.
    """

    @abstractmethod
    def __call__(
        self,
        queries: Float[Array, "h r d"],
        measure: Measure,
        values: Float[Array, "m v"],
        mask: AbstractMask | None = None,
    ) -> tuple[Float[Array, "h r"], Float[Array, "h r v"]]:
        """Log mass log Σ_j w_j e^{⟨q,y_j⟩} and tilted mean Σ_j w_j e^{⟨q,y_j⟩} values_j / Σ_j w_j e^{⟨q,y_j⟩}.

        Without `measure.weights` every valid point weighs 1/(number of valid points); a causal mask does not
        change that number. A query that sees no point has log mass -inf and mean 0. `v` may be 0: log mass alone.
        """

    @abstractmethod
    def peak(
        self,
        queries: Float[Array, "h r d"],
        measure: Measure,
        values: Float[Array, "m v"],
        mask: AbstractMask | None = None,
    ) -> tuple[Float[Array, "h r"], Float[Array, "h r v"]]:
        """Largest score max_j ⟨q,y_j⟩ and mean of the values over its maximisers: the limit of infinite β."""
