"""A unit of work: the smallest part of an experiment that is computed, saved and resumed as a whole."""

import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .files import write_atomically

Arrays = dict[str, np.ndarray]
HEADER = "__unit__"


class Unit(NamedTuple):
    """A named, deterministic function of the units before it.

    `compute` gets the results of all earlier units by name: a later piece of a long run starts from the state in
    which the piece before it ended. `cost` is its share of the progress bar. `needs` names the units that it really
    uses (None: every earlier one); units that need nothing unfinished are computed side by side.
    """

    name: str
    compute: Callable[[Mapping[str, Arrays]], Arrays]
    cost: int = 1
    needs: tuple[str, ...] | None = None

    def ready(self, earlier: list["Unit"], results: Mapping[str, Arrays]) -> bool:
        """Whether all that the unit needs is there, `earlier` being the units before it."""
        needed = [unit.name for unit in earlier] if self.needs is None else self.needs
        return all(name in results for name in needed)


class Timing(NamedTuple):
    """Seconds of a run up to the end of a unit, from the end of the unit before: all, and those of compilation."""

    wall: float
    compile: float


class CorruptCheckpoint(Exception):
    """A file that is there but does not hold the whole result of the unit."""


def save_unit(path: Path, name: str, arrays: Arrays, timing: Timing) -> None:
    """Write the checkpoint of a unit, atomically."""
    header = np.array(json.dumps({"unit": name, **timing._asdict()}))

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:  # given a name, NumPy would add a suffix to it
            np.savez(file, allow_pickle=False, **{HEADER: header}, **arrays)

    write_atomically(path, write)


def load_unit(path: Path, name: str) -> tuple[Arrays, Timing] | None:
    """The result and timing of a finished unit; None if there is no checkpoint.

    Raises `CorruptCheckpoint` for a file that is damaged (every array carries a checksum) or of another unit.
    """
    try:
        # Opened here: NumPy leaves a file that is not a whole archive open.
        with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        header = json.loads(arrays.pop(HEADER).item())
        timing = Timing(header["wall"], header["compile"])
    except FileNotFoundError:
        return None
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise CorruptCheckpoint(f"{path.name}: {error}") from error
    if header["unit"] != name:
        raise CorruptCheckpoint(f"{path.name} holds the unit {header['unit']!r}")
    return arrays, timing
