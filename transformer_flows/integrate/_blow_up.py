"""How long a solution still has before it leaves every bound.

The size q = |x|² of a solution that blows up at t* is C (t* - t)^{-p} (1 + …), so f = (log q)' is p/(t* - t) and more.
Exponential growth, however fast, has f' = 0, and is no blow-up. The estimates are functions of the state alone: with
the time at which they are taken held fixed, their derivatives are those of t*.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from .._types import Scalar
from ..dynamics import AbstractFlow
from ._observe import cast_like
from .solution import Status

Rates = Callable[[Scalar, PyTree[Array]], Scalar]


def ends_within(flow: AbstractFlow, t: Scalar, x: PyTree[Array], span: Scalar) -> Bool[Array, ""]:
    """Whether the solution blows up within a time of `span`, to first order: f/f' < span."""
    f, slope = _with_slope(_growth(flow), flow, t, x)
    return (f > 0) & (f < slope * span.astype(f.dtype))


def time_left(flow: AbstractFlow, t: Scalar, x: PyTree[Array]) -> Scalar:
    """t* - t = 2f'/f'' up to its third power; NaN where the solution shows no blow-up.

    The constant term of f, which f/f' keeps, would be wrong in second derivatives.
    """
    growth = _growth(flow)
    slope_of = lambda t, x: _with_slope(growth, flow, t, x)[1]
    slope, second = _with_slope(slope_of, flow, t, x)
    ends = (slope > 0) & (second > 0)
    return jnp.where(ends, 2 * slope / jnp.where(ends, second, 1), jnp.nan)


def at_blow_up(
    flow: AbstractFlow, status: Status, end_time: Scalar, x: PyTree[Array], span: Scalar
) -> tuple[Status, Scalar]:
    """Status and end of a solve that stopped at (`end_time`, `x`): `blow_up`, if one follows within `span`."""
    left = time_left(flow, jax.lax.stop_gradient(end_time), x)
    ended = jnp.asarray(status != "successful") & jnp.asarray(status != "max_steps")
    blown = ended & (left < span.astype(left.dtype))
    status = Status(jnp.where(blown, Status.of("blow_up").code, status.code))
    return status, jnp.where(blown, end_time + left.astype(end_time.dtype), end_time)


def _growth(flow: AbstractFlow) -> Rates:
    """f = (log |x|²)' along the flow."""

    def growth(t: Scalar, x: PyTree[Array]) -> Scalar:
        velocity = flow(t, x)
        dot = lambda a, b: sum(jnp.sum(u * v) for u, v in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
        square = dot(x, x)
        return jnp.where(square > 0, 2 * dot(x, velocity) / jnp.where(square > 0, square, 1), 0)

    return growth


def _with_slope(rate: Rates, flow: AbstractFlow, t: Scalar, x: PyTree[Array]) -> tuple[Scalar, Scalar]:
    """A function of (t, x) and its derivative along the flow."""
    return jax.jvp(rate, (t, x), (jnp.ones_like(t), cast_like(flow(t, x), x)))
