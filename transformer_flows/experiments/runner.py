"""Running an experiment: unit after unit, saved after each, so that an interrupted run resumes to the same result."""

import concurrent.futures
import shlex
import time
from collections.abc import Callable
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
    resumed = 0
    with UnitProgress(spec.title or spec.kind, units, console) as progress, Interrupts(progress) as interrupts:
        for unit in units:
            saved = _saved(folder, unit, progress.say)
            if saved is None:
                if interrupts.signal:
                    raise RunInterrupted(_how_to_resume(folder, len(results), len(units)), 128 + interrupts.signal)
                saved = _in_thread(lambda unit=unit: _timed(unit, results))
                save_unit(folder.checkpoint(unit.name), unit.name, *saved)
                progress.computed(unit)
            else:
                resumed += 1
                progress.loaded(unit)
            results[unit.name] = saved[0]
            timings.append(saved[1])
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


def _timed(unit: Unit, earlier: dict[str, Arrays]) -> tuple[Arrays, Timing]:
    from .stopwatch import compile_clock

    clock = compile_clock()
    compiled, start = clock.seconds(), time.perf_counter()
    try:
        arrays = unit.compute(earlier)
    except Exception as error:
        error.add_note(f"in the unit {unit.name!r} of the run")
        raise
    return arrays, Timing(time.perf_counter() - start, clock.seconds() - compiled)


def _in_thread(compute: Callable[[], Any]) -> Any:
    """Compute while this thread stays free to take signals: compiled code never returns to Python to do so."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(compute)
        while not future.done():
            concurrent.futures.wait([future], timeout=0.5)
        return future.result()


def _how_to_resume(folder: RunFolder, done: int, total: int) -> str:
    return f"Stopped after {done} of {total} units. Resume with: transformer-flows run {shlex.quote(str(folder.path))}"
