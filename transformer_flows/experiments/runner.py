"""Running an experiment: unit after unit, saved after each, so that an interrupted run resumes to the same result."""

import concurrent.futures
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from .files import to_json, write_text
from .folder import RunFolder
from .interrupt import Interrupts
from .progress import UnitProgress
from .provenance import provenance
from .record import DATA, PROVENANCE, Record, load, write_dataset
from .spec import Spec
from .unit import Arrays, CorruptCheckpoint, Timing, Unit, load_unit, save_unit

if TYPE_CHECKING:
    import xarray

# Units computed at once: as many as the processors that a solve of moderate size leaves idle.
WORKERS = min(2, os.cpu_count() or 1)


class RunInterrupted(Exception):
    """A run that was asked to stop and can be resumed. `exit_code` is the shell's, 128 + signal."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code


def run(spec: Spec, folder: str | Path, *, force: bool = False, console: Console | None = None) -> Record:
    """Compute what is missing of the run in `folder` and return its record.

    A folder that already holds finished units of this very spec is continued, and the result is bitwise that of a
    run without interruption; a finished run is not computed again unless `force`. The first SIGINT or SIGTERM lets
    the current unit finish, the second stops at once. `console` shows progress and notices (None: stderr).

    Raises `RunFolderError` if the folder is in use, or belongs to another config or to something else, and
    `RunInterrupted` if it was stopped.
    """
    console = console or Console(stderr=True)
    owned = RunFolder(Path(folder))
    with owned.locked():
        owned.prepare(spec, force)
        if owned.finished:
            console.print(f"{folder} is finished already; --force computes it again.", highlight=False)
        else:
            results, timing = _compute(spec, owned, console)
            write_dataset(owned.path / DATA, spec.dataset(results))
            write_text(owned.path / PROVENANCE, to_json(provenance(spec.as_dict(), timing)))
        owned.remove_checkpoints()
    return load(folder)


def compute(spec: Spec) -> "xarray.Dataset":
    """The named arrays of an experiment, computed in one go and kept in memory alone."""
    _require_precision(spec)
    results: dict[str, Arrays] = {}
    for unit in _units(spec):
        results[unit.name] = unit.compute(results)
    return spec.dataset(results)


def _compute(spec: Spec, folder: RunFolder, console: Console) -> tuple[dict[str, Arrays], dict[str, Any]]:
    """Results of all units, and the time that they took in all invocations together."""
    _require_precision(spec)
    units = _units(spec)
    results: dict[str, Arrays] = {}
    timings: list[Timing] = []
    with UnitProgress(spec.title or spec.kind, units, console) as progress, Interrupts(progress) as interrupts:
        for unit in units:
            saved = _saved(folder, unit, progress.say)
            if saved is not None:
                results[unit.name], timing = saved
                timings.append(timing)
                progress.loaded(unit)
        resumed = len(results)
        for unit, arrays, timing in _side_by_side(units, results, lambda: interrupts.signal):
            save_unit(folder.checkpoint(unit.name), unit.name, arrays, timing)
            results[unit.name] = arrays
            timings.append(timing)
            progress.computed(unit)
        if len(results) < len(units):
            raise RunInterrupted(_how_to_resume(folder, len(results), len(units)), 128 + interrupts.signal)
    wall, compiling = sum(t.wall for t in timings), sum(t.compile for t in timings)
    return results, {
        "wall_seconds": wall,
        "compile_seconds": compiling,
        "run_seconds": wall - compiling,
        "units": len(units),
        "units_resumed": resumed,
    }


def _units(spec: Spec) -> list[Unit]:
    units = spec.units()
    assert len({unit.name for unit in units}) == len(units), "two units of work have one name"
    return units


def _require_precision(spec: Spec) -> None:
    """The library never changes JAX's global flags: whoever starts the program asks for float64."""
    import jax.numpy as jnp

    if spec.dtype == "float64" and jnp.result_type(float) != jnp.float64:
        raise RuntimeError('dtype="float64" needs jax.config.update("jax_enable_x64", True) at the program\'s start.')


def _saved(folder: RunFolder, unit: Unit, say: Callable[[str], None]) -> tuple[Arrays, Timing] | None:
    try:
        return load_unit(folder.checkpoint(unit.name), unit.name)
    except CorruptCheckpoint as fault:
        say(f"checkpoint not usable, computing the unit again: {fault}")
        return None


def _side_by_side(
    units: list[Unit], results: Mapping[str, Arrays], stop: Callable[[], int]
) -> Iterator[tuple[Unit, Arrays, Timing]]:
    """Compute the units that `results` (which the caller fills) lacks, in threads, and yield each when it is done.

    One solve of a few hundred tokens keeps one core busy, so `WORKERS` units run at once; the first one runs alone,
    since it compiles for the others. This thread stays free to take signals: compiled code never returns to Python.
    After a stop nothing new is begun.
    """
    from .stopwatch import compile_clock

    clock = compile_clock()
    lap = (time.perf_counter(), clock.seconds())
    waiting = [unit for unit in units if unit.name not in results]
    running: dict[concurrent.futures.Future[Arrays], Unit] = {}
    first = True
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        while (waiting and not stop()) or running:
            ready = [unit for unit in waiting if unit.ready(units[: units.index(unit)], results)] if not stop() else []
            for unit in ready[: (1 if first else WORKERS) - len(running)]:
                waiting.remove(unit)
                running[pool.submit(_named, unit, dict(results))] = unit
            done, _ = concurrent.futures.wait(running, timeout=0.5, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                unit, arrays = running.pop(future), future.result()
                now = (time.perf_counter(), clock.seconds())
                yield unit, arrays, Timing(now[0] - lap[0], now[1] - lap[1])
                lap, first = now, False


def _named(unit: Unit, earlier: Mapping[str, Arrays]) -> Arrays:
    try:
        return unit.compute(earlier)
    except Exception as error:
        error.add_note(f"in the unit {unit.name!r} of the run")
        raise


def _how_to_resume(folder: RunFolder, done: int, total: int) -> str:
    return f"Stopped after {done} of {total} units. Resume with: transformer-flows run {shlex.quote(str(folder.path))}"
