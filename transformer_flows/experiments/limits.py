"""How large and how small numbers may be before an experiment is about rounding or overflow; refused before work."""

from collections.abc import Iterator, Sequence

import numpy as np

from .spec import got


def exponent_conflict(name: str, value: float | Sequence[float], dtype: str, *, factor: float = 1.0) -> Iterator[str]:
    """A message if e^{|x|·factor} overflows, or comes near it, for one of the values x."""
    # the margin of 10 is that of the weighted distance: sums, squares of unit vectors and factors d come on top
    most = np.floor((np.log(np.finfo(dtype).max) - 10) / factor)
    if np.abs(value).max() >= most:
        shown = list(value) if isinstance(value, Sequence) else value
        yield f"{name}: {got(shown, f'less than {most:g} in size, beyond which exponentials overflow {dtype}')}"


def rounding_conflict(name: str, values: Sequence[float], dtype: str) -> Iterator[str]:
    """A message if a perturbation of unit vectors is so small that its growth would be that of rounding errors."""
    least = 1e3 * float(np.finfo(dtype).eps)
    if min(values) < least:
        yield f"{name}: {got(list(values), f'at least {least:.2g} each, a thousand times the rounding of {dtype}')}"
