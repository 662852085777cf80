"""The folder of a run: what is in it, what state the run is in, and whose it is."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from .files import TEMPORARY, write_text
from .record import CONFIG, DATA, PROVENANCE
from .spec import Spec, read_toml

try:
    import fcntl
except ImportError:  # Windows: two processes on one folder are not noticed there
    fcntl = None

UNITS, LOCK, PAGE = "units", "lock", "index.html"


class RunFolderError(RuntimeError):
    """A folder that cannot be used for this run."""


class RunFolder:
    """Paths and states of a run folder. A run is finished when its provenance, written last, is there."""

    def __init__(self, path: Path):
        self.path = path
        self.units = path / UNITS

    @property
    def finished(self) -> bool:
        return (self.path / DATA).is_file() and (self.path / PROVENANCE).is_file()

    def checkpoint(self, unit: str) -> Path:
        return self.units / f"{unit}.npz"

    def prepare(self, spec: Spec, force: bool) -> None:
        """Make the folder that of `spec`; refuse one that belongs to another config or is not a run's at all."""
        if (self.path / CONFIG).is_file():
            if force:
                self._clear()
            else:
                self._refuse_other_config(spec)
        elif any(entry.name != LOCK for entry in self.path.iterdir()):
            raise RunFolderError(f"{self.path} is not empty and is not the folder of a run; give another --out.")
        if not (self.path / CONFIG).is_file():
            write_text(self.path / CONFIG, spec.as_toml())
        self.units.mkdir(exist_ok=True)
        for half_written in [*self.path.glob(TEMPORARY), *self.units.glob(TEMPORARY)]:
            half_written.unlink()  # by a process that was killed: we own the folder

    def remove_checkpoints(self) -> None:
        """The record holds everything now."""
        shutil.rmtree(self.units, ignore_errors=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Own the folder. The system frees the lock of a process that dies, however it dies."""
        if self.path.exists() and not self.path.is_dir():
            raise RunFolderError(f"{self.path} is a file; give another --out.")
        self.path.mkdir(parents=True, exist_ok=True)
        file = self._lock()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                (self.path / LOCK).unlink()
            file.close()

    def _lock(self) -> TextIO:
        path = self.path / LOCK
        while True:
            file = open(path, "a+", encoding="utf-8")  # noqa: SIM115  open as long as the lock is held
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                owner = file.read().strip() or "unknown"
                file.close()
                raise RunFolderError(
                    f"{self.path} is in use by another run (process {owner}). Wait for it, or give another --out."
                ) from None
            if _same_file(file, path):
                file.truncate(0)
                file.write(f"{os.getpid()}\n")
                file.flush()
                return file
            file.close()  # its owner removed it between our opening and our locking

    def _refuse_other_config(self, spec: Spec) -> None:
        # Compared as plain values: a config of an older version may hold keys that are unknown today.
        different = _differences(read_toml(self.path / CONFIG), spec.as_dict())
        if different:
            raise RunFolderError(
                f"{self.path} belongs to another config; it differs in\n{different}\n"
                "Give another --out, or --force to replace it."
            )

    def _clear(self) -> None:
        """Remove what a run wrote, the marker of completion first; other files are not ours."""
        for name in (PROVENANCE, DATA, PAGE, CONFIG):
            (self.path / name).unlink(missing_ok=True)
        self.remove_checkpoints()


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return "\n".join(f"  {key}: {old.get(key)!r} in the folder, {new.get(key)!r} asked for" for key in keys)


def _same_file(file: TextIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
