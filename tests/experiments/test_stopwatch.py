"""The compile clock: spans that overlap, as two threads make them, count once."""

import time

from transformer_flows.experiments.stopwatch import COMPILE_EVENTS, CompileClock


def test_overlapping_spans_count_once(monkeypatch):
    clock, ends = CompileClock(), []
    monkeypatch.setattr(time, "perf_counter", lambda: ends[-1])
    # ends and lengths: nested, overlapping, apart, around all of the last two
    for end, length, total in [(2.0, 1.0, 1.0), (3.0, 2.0, 2.0), (4.0, 1.5, 3.0), (7.0, 1.0, 4.0), (8.0, 4.5, 7.0)]:
        ends.append(end)
        clock._note(COMPILE_EVENTS + "any", length)
        assert clock.seconds() == total
    clock._note("/jax/other", 5.0)
    assert clock.seconds() == 7.0
