"""Checks of sizes shared by the spaces."""

from operator import index
from typing import Any

from jaxtyping import Array

from .._checks import refuse_other_count


def size(value: Any, name: str, least: int) -> int:
    """`value`, which may be an integer of NumPy, as an int; `ValueError` if it is none of at least `least`."""
    try:
        number = value if isinstance(value, bool) else index(value)
    except TypeError:
        number = value
    refuse_other_count(number, name, least)
    return number


def same_width(d: int, space: str, **arrays: Array) -> None:
    """Raise `ValueError` unless the last axis of every array is `d`."""
    for name, x in arrays.items():
        if x.ndim == 0 or x.shape[-1] != d:
            raise ValueError(f"{name} must be vectors of R^{d}, shape (..., {d}), for {space}({d}); got {x.shape}.")
