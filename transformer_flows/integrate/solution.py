"""What a solve returns: times, states, observed values, and how it ended."""

from typing import Any, ClassVar

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree


class Status(eqx.Module):
    """How a solve ended; prints and compares as a word. Holds one code, or one per member of an ensemble.

    `successful`: reached the last time. `blow_up`: the solution of an `explosive` flow leaves every bound at
    `end_time`. `max_steps`: stopped at the step limit. `non_finite`: the state left the
    finite numbers. `step_underflow`: the error control asked for steps below the resolution of the clock (a
    singularity, or a field that is not smooth). `solver_failed`: an implicit solver did not converge.
    """

    code: Int[Array, "..."]

    words: ClassVar[tuple[str, ...]] = (
        "successful",
        "max_steps",
        "non_finite",
        "step_underflow",
        "solver_failed",
        "blow_up",
    )

    @staticmethod
    def of(word: str) -> "Status":
        """The status called `word`."""
        return Status(jnp.asarray(Status.words.index(word)))

    def __eq__(self, other: object) -> Bool[Array, "..."] | bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        if isinstance(other, str):
            if other not in Status.words:
                raise ValueError(f"no status is called {other!r}; the statuses are {', '.join(Status.words)}.")
            other = Status.of(other)
        if not isinstance(other, Status):
            return NotImplemented
        equal = self.code == other.code
        return equal if isinstance(equal, jax.core.Tracer) or equal.ndim else bool(equal)

    def __ne__(self, other: object) -> Bool[Array, "..."] | bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        equal = self.__eq__(other)
        return ~equal if isinstance(equal, jax.Array) else (equal if equal is NotImplemented else not equal)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # codes may be traced

    def __str__(self) -> str:
        if isinstance(self.code, jax.core.Tracer):
            return f"<traced status {self.code}>"
        codes = np.asarray(self.code)
        if codes.ndim == 0:
            return Status.words[int(codes)]
        counts = np.bincount(codes.ravel(), minlength=len(Status.words))
        return ", ".join(f"{count} {word}" for word, count in zip(Status.words, counts, strict=True) if count)

    __repr__ = __str__


class Solution(eqx.Module):
    """The outcome of `solve`.

    `ts` `(t,)` are the requested times, `states` the states there (None with `states=False`), `observed` the
    observables by name; both have a leading time axis and hold NaN after `end_time`, the time reached. `stats` counts
    the steps. An ensemble's solution has a leading member axis on everything but `ts`.
    """

    ts: Float[Array, "t"]
    states: PyTree[Array] | None
    observed: dict[str, Any]
    status: Status
    end_time: Float[Array, "..."]
    stats: dict[str, Array]
