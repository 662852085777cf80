"""Checks of sizes shared by the spaces."""

from operator import index
from typing import Any

from jaxtyping import Array


def size(value: Any, name: str, least: int) -> int:
    """`value` as an int; `ValueError` if it is not an integer of at least `least`."""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.")
    return number


def same_width(d: int, space: str, **arrays: Array) -> None:
    """Raise `ValueError` unless the last axis of every array is `d`."""
    for name, x in arrays.items():
        if x.ndim == 0 or x.shape[-1] != d:
            raise ValueError(f"{name} must be vectors of R^{d}, shape (..., {d}), for {space}({d}); got {x.shape}.")
