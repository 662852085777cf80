"""How much of the time went into compilation."""

import functools
import time

import jax.monitoring

COMPILE_EVENTS = "/jax/core/compile/"


class CompileClock:
    """Adds up the spans in which JAX traces, lowers or compiles, as JAX itself reports them."""

    def __init__(self):
        self._spans: list[tuple[float, float]] = []
        jax.monitoring.register_event_duration_secs_listener(self._note)

    def seconds(self) -> float:
        """Seconds since the clock was made."""
        return sum((end - start for start, end in self._spans), 0.0)

    def _note(self, event: str, duration_secs: float, **_: str | int) -> None:
        if not event.startswith(COMPILE_EVENTS):
            return
        end = time.perf_counter()
        start = end - duration_secs
        # A function that is traced inside another has already been reported: the outer span contains it.
        while self._spans and self._spans[-1][0] >= start:
            self._spans.pop()
        self._spans.append((start, end))


@functools.cache
def compile_clock() -> CompileClock:
    """The clock of this process: JAX has no portable way to take a listener away again."""
    return CompileClock()
