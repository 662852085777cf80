"""The noise of every process: dX = -rX dt + dW with X(0) = 0, on an absolute clock.

Interval k of the clock is drawn from the key folded with k: the value at its end by the exact transition from the
value at its start, then the midpoint of every half, by the exact law of the midpoint given both ends. So a value
depends on the key and on its time only, never on the horizon, on the other times, or on how finely the path is
needed. r = 0 is Brownian motion.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, PyTree

from .._types import Key, Scalar, Times
from ._dyadic import Places, places

Values = Float[Array, "s ..."]
_TANHC = (1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925)


def gauss_markov(key: Key, like: PyTree, ts: Times, *, rate: Scalar, unit: float, depth: int) -> PyTree:
    """X at the times `ts` for every floating array (or `ShapeDtypeStruct`) in `like`, with a leading time axis.

    Linear below the finest level, unit/2^depth. Other leaves are None.
    """
    return _draw(key, eqx.filter_eval_shape(lambda: like), places(ts, unit, depth), rate, unit)


@eqx.filter_jit
def _draw(key: Key, like: PyTree, where: Places, rate: Scalar, unit: float) -> PyTree:
    leaves, structure = jax.tree.flatten(like)
    noise = [
        _leaf(jr.fold_in(key, i), leaf.shape, leaf.dtype, where, rate, unit)
        if jnp.issubdtype(leaf.dtype, jnp.floating)
        else None
        for i, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, noise)


def _leaf(key: Key, shape: tuple[int, ...], dtype: jnp.dtype, where: Places, rate: Scalar, unit: float) -> Values:
    if where.intervals is None:
        left, right = _ends_by_search(key, shape, dtype, where.interval, rate, unit)
    else:
        left, right = _ends(key, shape, dtype, where.interval, where.intervals, rate, unit)
    left, right = _refine(key, where, left, right, rate, unit)
    w = _column(where.weight.astype(dtype), left)
    return (1 - w) * left + w * right


def _ends(key, shape, dtype, interval, intervals: int, rate, unit) -> tuple[Values, Values]:
    """X at both ends of the interval of every time, from the values at all multiples of the unit."""
    keys = jax.vmap(lambda k: jr.fold_in(jr.fold_in(key, k), 0))(jnp.arange(intervals, dtype=jnp.int32))
    decay, spread = _transition(rate, unit, dtype)

    def step(x, xi):
        x = decay * x + xi
        return x, x

    zero = jnp.zeros(shape, dtype)
    _, later = jax.lax.scan(step, zero, spread * _normals(keys, shape, dtype))
    ends = jnp.concatenate([zero[None], later])
    return ends[interval], ends[interval + 1]


def _ends_by_search(key, shape, dtype, interval, rate, unit) -> tuple[Values, Values]:
    """The same where the number of intervals is not known: step through them until the last one is reached."""
    decay, spread = _transition(rate, unit, dtype)
    zeros = jnp.zeros((interval.shape[0], *shape), dtype)

    def body(carry):
        k, x, left, right = carry
        later = decay * x + spread * jr.normal(jr.fold_in(jr.fold_in(key, k), 0), shape, dtype)
        here = _column(interval == k, left)
        return k + 1, later, jnp.where(here, x, left), jnp.where(here, later, right)

    start = (jnp.zeros((), jnp.int32), zeros[0], zeros, zeros)
    _, _, left, right = jax.lax.while_loop(lambda carry: carry[0] <= interval.max(), body, start)
    return left, right


def _refine(key, where: Places, left: Values, right: Values, rate, unit) -> tuple[Values, Values]:
    """Values at both ends of the cell of every time: halve its interval `levels` times, towards the time."""
    if where.levels == 0:
        return left, right
    keys = jax.vmap(lambda k: jr.fold_in(key, k))(where.interval)
    level = jnp.arange(where.levels, dtype=jnp.int32)
    pull, spread = _bridge(rate, unit / 2.0**level, left.dtype)

    def halve(carry, now):
        left, right, node = carry
        pull, spread, shift = now
        z = _normals(jax.vmap(jr.fold_in)(keys, node), left.shape[1:], left.dtype)
        middle = pull * (left + right) + spread * z
        upper = (where.position >> shift) & 1
        in_upper = _column(upper == 1, left)
        # Nodes are numbered as in a heap: 1 is the interval's midpoint, 2 and 3 those of its halves; 0 is its end.
        return (jnp.where(in_upper, middle, left), jnp.where(in_upper, right, middle), 2 * node + upper), None

    carry = (left, right, jnp.ones_like(where.interval))
    (left, right, _), _ = jax.lax.scan(halve, carry, (pull, spread, where.levels - 1 - level))
    return left, right


def _transition(rate: Scalar, h: float, dtype: jnp.dtype) -> tuple[Scalar, Scalar]:
    """e^{-rh} and the standard deviation of X(t+h) given X(t): √((1 - e^{-2rh})/(2r)), √h at r = 0."""
    z = rate * h
    variance = h * _tanhc(z) * (1 + jnp.exp(-2 * z)) / 2
    return jnp.exp(-z).astype(dtype), jnp.sqrt(variance).astype(dtype)


def _bridge(rate: Scalar, h: Float[Array, "j"], dtype: jnp.dtype) -> tuple[Float[Array, "j"], Float[Array, "j"]]:
    """Weight of X(t) + X(t+h) in the mean of X(t+h/2) given both, 1/(2 cosh(rh/2)), and its standard deviation.

    The variance is tanh(rh/2)/(2r); ½ and h/4 at r = 0.
    """
    z = rate * h / 2
    decay = jnp.exp(-z)  # 1/(2 cosh z) without overflow
    return (decay / (1 + decay * decay)).astype(dtype), jnp.sqrt(h / 4 * _tanhc(z)).astype(dtype)


def _tanhc(z: Array) -> Array:
    """tanh(z)/z, with right derivatives at 0."""
    small = z < 0.03
    square = jnp.where(small, z * z, 0)
    series = jnp.zeros_like(square)
    for c in reversed(_TANHC):
        series = series * square + c
    far = jnp.where(small, 1, z)
    return jnp.where(small, series, jnp.tanh(far) / far)


def _normals(keys: Key, shape: tuple[int, ...], dtype: jnp.dtype) -> Values:
    return jax.vmap(lambda k: jr.normal(k, shape, dtype))(keys)


def _column(x: Array, like: Values) -> Array:
    """`x`, one number per time, against arrays of one array per time."""
    return x.reshape(-1, *([1] * (like.ndim - 1)))
