"""Asking a run to stop: the first signal lets the current unit finish, the second ends the process."""

import os
import signal
import threading
from types import FrameType

from .progress import UnitProgress


class Interrupts:
    """While entered, SIGINT and SIGTERM set `signal` and do nothing else; a second one exits at once.

    Outside the main thread Python allows no handlers: then nothing is caught.
    """

    def __init__(self, progress: UnitProgress):
        self.signal = 0
        self._progress = progress
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._take) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            # The unit is computed in a thread that cannot be cancelled; finished units are on the disk.
            self._progress.say("Stopped at once. Finished units are kept: the same command resumes.")
            self._progress.abandon()
            os._exit(128 + number)
        self.signal = number
        self._progress.say("Finishing the current unit; interrupt again to stop at once.")
