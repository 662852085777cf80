"""When a recorded quantity comes to rest."""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete
from .._types import ScalarLike


def settling_time(
    ts: Float[ArrayLike, "t"], slope: Float[ArrayLike, "*batch t"], tolerance: ScalarLike, window: ScalarLike
) -> Float[Array, "*batch"]:
    """The first recorded time t at which `slope` is below `tolerance` and stays so up to t + `window`.

    NaN where there is none, and where the record ends before the window does. A value that is NaN is not below. Take
    the window longer than any period of the weights: a slope that swings passes through small values. Raises
    `ValueError` for a window that is negative.
    """
    if (value := concrete(window)) is not None and not value >= 0:
        raise ValueError(f"window must be a length of time, 0 or more; got {window}.")
    ts, below = jnp.asarray(ts), jnp.asarray(slope) < tolerance
    rounding = 1e-6 * (ts[-1] - ts[0])  # times are sums
    ends = ts + window + rounding
    watched = (ts[None, :] >= ts[:, None]) & (ts[None, :] <= ends[:, None])
    # the number of records in each window that are not below
    missed = jnp.einsum("...t,wt->...w", (~below).astype(ts.dtype), watched.astype(ts.dtype))
    settled = (missed == 0) & jnp.broadcast_to(ts + window <= ts[-1] + rounding, missed.shape)
    first = jnp.argmax(settled, axis=-1)
    return jnp.where(jnp.any(settled, axis=-1), ts[first], jnp.nan)
