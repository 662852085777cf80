"""Timing by turns: what a table compares is measured in one run, call by call."""

import ctypes
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import jax

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def race(calls: Mapping[str, Callable], seconds: float = 2.0, rounds: int = 20) -> dict[str, float]:
    """Least wall time of each call in seconds, over rounds in which every call runs twice and is timed once.

    The untimed call of a pair restores the caches and the threads that the previous contestant took. Rounds stop when
    `seconds` per contestant are spent, but two are always made.
    """
    best = dict.fromkeys(calls, float("inf"))
    begin = time.perf_counter()
    for done in range(rounds):
        if done >= 2 and time.perf_counter() - begin > seconds * len(calls):
            break
        for name, call in calls.items():
            finish(call())
            start = time.perf_counter()
            finish(call())
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def finish(result: object) -> object:
    """Wait for what a call started."""
    jax.block_until_ready(result)
    return result


def extra_memory(call: Callable) -> float | None:
    """Bytes by which the peak resident size passes the present one during a call (Linux; elsewhere None)."""
    try:
        finish(call())
        ctypes.CDLL(None).malloc_trim(0)  # what the last call freed must not hide what this one takes
        before = _status("VmRSS")
        _RESET.write_text("5")  # resets the peak
        finish(call())
        return max(_status("VmHWM") - before, 0)
    except (OSError, AttributeError):
        return None


def available_memory() -> float:
    """Bytes that this machine can still give (infinite where that is unknown)."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return float("inf")
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def _status(name: str) -> float:
    lines = _STATUS.read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(name))
