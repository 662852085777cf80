"""Claims: statements of papers as numbers that a run either reproduces or does not."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import NamedTuple


class Measurement(NamedTuple):
    """What a claim function returns: the number predicted, the one measured, and where the measured one must lie.

    `error` is the half-width of the measurement's own interval (0: it is deterministic).
    """

    predicted: float
    measured: float
    low: float
    high: float
    error: float = 0.0


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of a paper with the outcome of checking it."""

    name: str
    source: str
    statement: str
    predicted: float
    measured: float
    low: float
    high: float
    error: float = 0.0
    seconds: float = 0.0
    fault: str = ""

    @property
    def verdict(self) -> str:
        """`holds` or `fails`; a claim whose check raised, or measured no number, fails."""
        holds = not self.fault and math.isfinite(self.measured) and self.low <= self.measured <= self.high
        return "holds" if holds else "fails"


class ClaimCheck(NamedTuple):
    """A claim that can be checked. `measure(quick)` computes it, with smaller sizes if `quick`."""

    name: str
    source: str
    statement: str
    measure: Callable[[bool], Measurement]

    def __call__(self, quick: bool) -> Claim:
        """Check it. An exception is a failed claim that carries the message."""
        start = time.perf_counter()
        try:
            outcome, fault = self.measure(quick), ""
        except Exception as error:
            outcome, fault = Measurement(*[math.nan] * 4), f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - start
        return Claim(self.name, self.source, self.statement, **outcome._asdict(), seconds=seconds, fault=fault)


CLAIMS: dict[str, ClaimCheck] = {}


def claim(source: str, statement: str) -> Callable[[Callable[[bool], Measurement]], Callable[[bool], Measurement]]:
    """Register the function below as the check of a claim, under its own name."""

    def register(measure: Callable[[bool], Measurement]) -> Callable[[bool], Measurement]:
        CLAIMS[measure.__name__] = ClaimCheck(measure.__name__, source, statement, measure)
        return measure

    return register
