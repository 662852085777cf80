"""The absolute clock of noise: where times lie among the intervals of one `unit` and their halvings.

A time is (interval, position, weight): interval k = [k, k+1) in units, `position` the cell of length unit/2^levels
within it, `weight` in [0, 1) the place within that cell. A time within rounding of a multiple of unit/2^j counts as
that multiple, so the times 0.005·k are knots of a clock of unit 0.64 whatever their last bits are.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._checks import concrete
from .._types import Times

# Intervals of the clock before the last time; each is drawn, and its number must fit into 32 bits.
_MOST_INTERVALS = 2**27
# Rounding errors of a time that came from a product or a sum, in units of its last place.
_ROUNDING = 4


class Places(eqx.Module):
    """Places of times, and how much of the noise they need: `levels` halvings of the first `intervals` units.

    `intervals` is None where the times are traced: the number is not known then. The first `dense_levels` halvings
    have about as many cells as there are times.
    """

    interval: Int[Array, "s"]
    position: Int[Array, "s"]
    weight: Float[Array, "s"]
    levels: int = eqx.field(static=True)
    intervals: int | None = eqx.field(static=True)

    @property
    def dense_levels(self) -> int:
        cells = 2 * self.interval.shape[0] // (self.intervals or 1)
        return min(self.levels, max(cells.bit_length() - 1, 0))


def places(ts: Times, unit: float, depth: int) -> Places:
    """Places of `ts`; no more levels than `depth`, fewer where the times are known and need fewer.

    A traced time that is not finite has the weight NaN, so that the noise there is NaN.
    """
    eps = _ROUNDING * float(jnp.finfo(ts.dtype).eps)
    known = concrete(ts)
    if known is None:
        finite = jnp.isfinite(ts)
        units, _ = _snap(jnp.where(finite, ts / unit, 0), eps, depth, jnp)
        interval, position, weight = _split(units, depth, jnp)
        return Places(interval, position, jnp.where(finite, weight, jnp.nan), depth, None)
    known = known.astype(np.float64) / unit
    if known.max(initial=0) >= _MOST_INTERVALS:
        raise ValueError(
            f"ts must end before {_MOST_INTERVALS} units of the noise's clock; got {known.max():.3g} units of "
            f"{unit:g}. Give the process a larger unit."
        )
    units, levels = _snap(known, eps, depth, np)
    most = int(levels.max())
    interval, position, weight = _split(units, most, np)
    return Places(
        jnp.asarray(interval, jnp.int32),
        jnp.asarray(position, jnp.int32),
        jnp.asarray(weight, ts.dtype),
        most,
        int(interval.max()) + 1,
    )


def _snap(units: Any, eps: float, depth: int, xp: Any) -> tuple[Any, Any]:
    """Times in units, moved to the coarsest multiple of 2^-j (j <= depth) within rounding, and that j."""
    cells = xp.asarray(2.0 ** np.arange(depth + 1), units.dtype)[None]
    nearest = xp.round(units[:, None] * cells) / cells
    same = xp.abs(units[:, None] - nearest) <= eps * units[:, None]
    level = xp.argmax(same, axis=1)
    found = same.any(axis=1)
    snapped = xp.take_along_axis(nearest, level[:, None], axis=1)[:, 0]
    return xp.where(found, snapped, units), xp.where(found, level, depth)


def _split(units: Any, levels: int, xp: Any) -> tuple[Any, Any, Any]:
    interval = xp.floor(units)
    cells = (units - interval) * 2**levels
    position = xp.floor(cells)
    return interval.astype(xp.int32), position.astype(xp.int32), cells - position
