"""When a recorded quantity comes to rest."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete
from .._types import ScalarLike, as_float


def settling_time(
    ts: Float[ArrayLike, "_"], slope: Float[ArrayLike, "*batch _"], tolerance: ScalarLike, window: ScalarLike
) -> Float[Array, "*batch"]:
    """The first recorded time t at which `slope` is below `tolerance` and stays so up to t + `window`.

    NaN where there is none, and where the record ends before the window does. A value that is NaN is not below. Take
    the window longer than any period of the weights: a slope that swings passes through small values. Raises
    `ValueError` for a window that is negative, and for times that do not increase or are not those of the slope.
    """
    if (value := concrete(window)) is not None and not value >= 0:
        raise ValueError(f"window must be a length of time, 0 or more; got {window}.")
    ts, slope = as_float(ts), as_float(slope)
    if ts.ndim != 1 or not ts.size or slope.shape[-1:] != ts.shape:
        raise ValueError(f"ts (t,) and slope (..., t) must have one number of times; got {ts.shape} and {slope.shape}.")
    if (value := concrete(ts)) is not None and not (np.diff(value) > 0).all():
        raise ValueError("ts must be finite and increase.")
    below = slope < tolerance
    rounding = 1e-6 * (ts[-1] - ts[0])  # times are sums
    ends = ts + window + rounding
    watched = (ts[None, :] >= ts[:, None]) & (ts[None, :] <= ends[:, None])
    # the number of records in each window that are not below
    missed = jnp.einsum("...t,wt->...w", (~below).astype(ts.dtype), watched.astype(ts.dtype))
    settled = (missed == 0) & jnp.broadcast_to(ts + window <= ts[-1] + rounding, missed.shape)
    first = jnp.argmax(settled, axis=-1)
    return jnp.where(jnp.any(settled, axis=-1), ts[first], jnp.nan)
