"""The progress bar of a run."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .unit import Unit


class UnitProgress:
    """Units done, time elapsed and time remaining; the bar moves by the units' cost."""

    def __init__(self, title: str, units: list[Unit], console: Console):
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[done]}/{task.fields[units]} units"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            speed_estimate_period=3600,  # a unit may take longer than the default of 30 s
        )
        self._units = len(units)
        self._done = 0
        self._cost_done = 0
        total = sum(unit.cost for unit in units)
        self._task = self._bar.add_task(title, total=total, done=0, units=self._units)

    def __enter__(self) -> "UnitProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """A line above the bar."""
        self._bar.console.print(text, highlight=False, markup=False)

    def computed(self, unit: Unit) -> None:
        """A unit that took time."""
        self._count(unit)
        self._bar.update(self._task, completed=self._cost_done, done=self._done)

    def loaded(self, unit: Unit) -> None:
        """A unit from a checkpoint: done, but no evidence of how fast units are computed."""
        self._count(unit)
        # `reset` makes the estimate of the time remaining start from here.
        self._bar.reset(self._task, completed=self._cost_done, done=self._done, units=self._units)

    def abandon(self) -> None:
        """Give the terminal back before the process ends at once."""
        self._bar.stop()

    def _count(self, unit: Unit) -> None:
        self._done += 1
        self._cost_done += unit.cost
