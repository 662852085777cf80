"""Claims: statements of papers as numbers that a run either reproduces or does not."""

import dataclasses
import functools
import math
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Measurement(NamedTuple):
    """What a claim function returns: the number predicted, the one measured, and where the statement says it lies.

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
    contradicted: str = ""

    @property
    def verdict(self) -> str:
        """`holds`, `fails`, or `contradicted`; a claim whose check raised, or measured no number, fails.

        `contradicted` is the outcome expected of a statement known to be at odds with the computation; `contradicted`
        (the field) says why. Should such a statement hold after all, what is known of it is wrong: it fails.
        """
        if self.fault or not math.isfinite(self.measured):
            return "fails"
        holds = self.low <= self.measured <= self.high
        if self.contradicted:
            return "fails" if holds else "contradicted"
        return "holds" if holds else "fails"

    @property
    def as_expected(self) -> bool:
        """Whether the outcome is the one that the project stands for."""
        return self.verdict != "fails"


class ClaimCheck(NamedTuple):
    """A claim that can be checked. `measure(quick)` computes it, with smaller sizes if `quick`.

    `contradicted` is the evidence against the statement in one line, where the computation contradicts it.
    """

    name: str
    source: str
    statement: str
    measure: Callable[[bool], Measurement]
    contradicted: str = ""

    def __call__(self, quick: bool) -> Claim:
        """Check it. An exception is a failed claim that carries the message."""
        start = time.perf_counter()
        try:
            outcome, fault = self.measure(quick), ""
        except Exception as error:
            outcome, fault = Measurement(*[math.nan] * 4), f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - start
        about = {"seconds": seconds, "fault": fault, "contradicted": self.contradicted}
        return Claim(self.name, self.source, self.statement, **outcome._asdict(), **about)


CLAIMS: dict[str, ClaimCheck] = {}


def shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute once what several claims need, also where they ask at the same time from two threads."""
    cached, lock = functools.cache(function), threading.Lock()

    @functools.wraps(function)
    def once(*args: Any) -> Any:
        with lock:
            return cached(*args)

    return once


def claim(
    source: str, statement: str, *, contradicted: str = ""
) -> Callable[[Callable[[bool], Measurement]], Callable[[bool], Measurement]]:
    """Register the function below as the check of a claim, under its own name.

    `contradicted` marks a statement that the computation is known to contradict, and holds the evidence in one line.
    The measurement's low and high are then what the statement predicts, not what is expected.
    """

    def register(measure: Callable[[bool], Measurement]) -> Callable[[bool], Measurement]:
        CLAIMS[measure.__name__] = ClaimCheck(measure.__name__, source, statement, measure, contradicted)
        return measure

    return register
