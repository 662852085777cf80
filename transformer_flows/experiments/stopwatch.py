"""How much of the time went into compilation."""

import functools
import threading
import time

import jax.monitoring

COMPILE_EVENTS = "/jax/core/compile/"


class CompileClock:
    """The time in which JAX traces, lowers or compiles on any thread, as JAX itself reports it."""

    def __init__(self):
        self._spans: list[tuple[float, float]] = []  # apart from each other, in order
        self._lock = threading.Lock()
        jax.monitoring.register_event_duration_secs_listener(self._note)

    def seconds(self) -> float:
        """Seconds since the clock was made. What two threads compile at the same time counts once."""
        return sum((end - start for start, end in self._spans), 0.0)

    def _note(self, event: str, duration_secs: float, **_: str | int) -> None:
        if not event.startswith(COMPILE_EVENTS):
            return
        with self._lock:
            end = time.perf_counter()
            start = end - duration_secs
            # Spans are reported as they end, so one that overlaps this one is among the last.
            while self._spans and self._spans[-1][1] >= start:
                start = min(start, self._spans.pop()[0])
            self._spans.append((start, end))


@functools.cache
def compile_clock() -> CompileClock:
    """The clock of this process: JAX has no portable way to take a listener away again."""
    return CompileClock()
