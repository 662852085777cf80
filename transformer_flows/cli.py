"""The command line: transformer-flows list | run | verify | view."""

import os
import signal
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import jax
import tyro
from rich.console import Console
from rich.table import Table

from .experiments.catalogue import find, from_dict, read, shipped_configs
from .experiments.folder import RunFolderError
from .experiments.quick_compile import compile_quickly
from .experiments.record import CONFIG, Record
from .experiments.runner import RunInterrupted, run
from .experiments.spec import Spec, SpecError, read_toml

PAGE = "index.html"
# Of the optimisations in a quick verification. Fewer compile faster still, but statistical claims would run for longer.
QUICK_LEVEL = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 (a claim fails), 2 (a wrong argument), 128 + signal."""
    commands = {"list": list_command, "run": run_command, "verify": verify_command, "view": view_command}
    try:
        return tyro.extras.subcommand_cli_from_dict(
            commands, prog="transformer-flows", description="Transformer token dynamics.", args=arguments
        )
    except BrokenPipeError:
        # The reader (head, less) has seen enough; what is still buffered must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE, a signal that Windows does not have
    except (SpecError, RunFolderError, OSError) as error:
        _complain(str(error))
        return 2
    except KeyboardInterrupt:
        _complain("Stopped.")
        return 128 + signal.SIGINT
    except RunInterrupted as stop:
        _complain(str(stop))
        return stop.exit_code


def list_command() -> int:
    """Show the experiments that come with the package: paper, claim, expected time."""
    table = Table("name", "paper", "claim", title="Experiments", title_justify="left")
    table.add_column("expected", justify="right")
    for path in shipped_configs():
        spec = from_dict(read_toml(path))
        table.add_row(path.stem, spec.source, spec.claim or spec.title, _duration(spec.expected_seconds))
    _console().print(table)
    return 0


def run_command(
    config: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="CONFIG")],
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE"), tyro.conf.UseAppendAction] = (),
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    force: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> int:
    """Run an experiment, or continue it where it stopped.

    Args:
        config: A TOML file, the name of a shipped config, or the folder of a run.
        set: Change a value of the config; may be given several times.
        out: The run folder. Default: runs/NAME, or the folder given as config.
        force: Replace what the folder holds.
    """
    spec = read(config, set)
    out = out or _default_folder(config)
    _start_jax(spec)
    record = run(spec, out, force=force)
    _report(record)
    return 0


def verify_command(
    pattern: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="[PATTERN]")] = "",
    quick: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> int:
    """Check the claims of the papers; exit code 1 if one fails.

    A statement that the computation is known to contradict is listed as contradicted, which is no failure.

    Args:
        pattern: Only claims whose name contains this (or matches it, with * and ?).
        quick: Smaller sizes, compiled with few optimisations: all claims in one or two minutes.
    """
    from .experiments.verify import select, verify

    checks = select(pattern)
    if quick:
        compile_quickly(QUICK_LEVEL)
    _start_jax()
    claims = verify(checks, quick=quick, console=_console())
    failed = [claim.name for claim in claims if not claim.as_expected]
    if failed:
        _complain(f"{len(failed)} of {len(claims)} claims fail: {', '.join(failed)}")
    return 1 if failed else 0


def view_command(
    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")],
    no_open: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> int:
    """Print the path of a run's page and open it where there is a display.

    Args:
        folder: The folder of a run.
        no_open: Only print the path.
    """
    page = folder / PAGE
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(f"{folder} is not the folder of a run.")
    if not page.is_file():
        raise FileNotFoundError(f"{folder} has no {PAGE}. Write it with: transformer-flows run {folder}")
    print(page.resolve())
    if not no_open and _has_display():
        webbrowser.open(page.resolve().as_uri())
    elif not no_open:
        _complain("No display to open it on.")
    return 0


def _report(record: Record) -> None:
    """Write the page if it is not there yet; print the summary."""
    # Imported here: matplotlib and plotly are slow to import, and only a finished run needs them.
    from . import reports

    if not (record.folder / PAGE).is_file():
        reports.write_report(record.data, record.config, record.provenance, record.folder)
    console = _console()
    console.print(reports.summary(record.data))
    times = {key: record.provenance[f"{key}_seconds"] for key in ("wall", "compile", "run")}
    console.print(
        f"Time: {times['wall']:.1f} s ({times['compile']:.1f} s compiling, {times['run']:.1f} s running)."
        f"\nFolder: {record.folder}\nPage: transformer-flows view {record.folder}",
        highlight=False,
        soft_wrap=True,
    )


def _start_jax(spec: Spec | None = None) -> None:
    """Set JAX up before it touches a device: precision, and compiled code kept between processes."""
    jax.config.update("jax_enable_x64", spec is None or spec.dtype == "float64")
    if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        folder = _cache_folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return  # nowhere to write: compile every time
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def _cache_folder() -> Path:
    """Where the system keeps what can be made again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "transformer_flows" / "jax"


def _default_folder(config: str) -> Path:
    file = find(config)
    return file.parent if file.name == CONFIG and Path(config).is_dir() else Path("runs") / file.stem


def _has_display() -> bool:
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _console() -> Console:
    """Standard output. In a file or a pipe, where rich would assume 80 columns, tables get more room."""
    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=120)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _complain(text: str) -> None:
    Console(stderr=True).print(text, style="red", highlight=False, markup=False, soft_wrap=True)
