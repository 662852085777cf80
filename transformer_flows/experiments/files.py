"""Files that exist whole or not at all, and plain values that survive them."""

import contextlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

JSON_MARK = "json:"
TEMPORARY = "*.part"


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Replace `path` by the file that `write` makes: a reader, or a crash, sees the old file or the new one."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        write(temporary)
        _sync(temporary, os.O_RDWR)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not every system lets a folder be opened
        _sync(path.parent, os.O_RDONLY)


def write_text(path: Path, text: str) -> None:
    """Replace a text file atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline="\n"))


def plain(value: Any) -> Any:
    """The value in Python's own types: NumPy and JAX scalars and arrays become numbers and nested lists."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value if isinstance(value, str | int | float | None) else str(value)


def to_json(value: Any) -> str:
    """Strict JSON. It has no NaN and no infinity, so such a number is written as {"$float": "nan"}."""
    return json.dumps(_tag(plain(value)), indent=2, allow_nan=False, ensure_ascii=False)


def from_json(text: str) -> Any:
    """Inverse of `to_json` for plain values."""
    return json.loads(text, object_hook=_untag)


def encode_attribute(value: Any) -> str | int | float | list[int] | list[float]:
    """An attribute that NetCDF can hold. What it cannot hold as it is (None, bools, nested values) becomes JSON."""
    value = plain(value)
    if isinstance(value, str) and not value.startswith(JSON_MARK) and "\0" not in value:
        return value
    if _is_number(value):
        return value
    # A list of one number would come back as a number, and a mixed list as floats.
    if isinstance(value, list) and len(value) > 1 and all(map(_is_number, value)) and len(set(map(type, value))) == 1:
        return value
    return JSON_MARK + to_json(value)


def decode_attribute(value: Any) -> Any:
    """Inverse of `encode_attribute`, for plain values."""
    value = plain(value)
    is_json = isinstance(value, str) and value.startswith(JSON_MARK)
    return from_json(value.removeprefix(JSON_MARK)) if is_json else value


def _is_number(value: Any) -> bool:
    small_int = type(value) is int and -(2**63) <= value < 2**63
    return small_int or type(value) is float


def _tag(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tag(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_tag(entry) for entry in value]
    return {"$float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _untag(value: dict[str, Any]) -> Any:
    return float(value["$float"]) if value.keys() == {"$float"} else value


def _sync(path: Path, mode: int) -> None:
    """Return when the contents are on the disk."""
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
