"""The noise of every process: dX = -rX dt + dW with X(0) = 0, on an absolute clock.

Interval k of the clock is drawn from the key folded with k: the value at its end by the exact transition from the
value at its start, then the midpoint of every half, by the exact law of the midpoint given both ends. So a value
depends on the key and on its time only, never on the horizon, on the other times, or on how finely the path is
needed. r = 0 is Brownian motion.

Values are kept as rows, one per time. A law (a, s) of a value given its neighbours is a·(their sum) + s·(normal).
"""

import math
from collections.abc import Callable
from itertools import accumulate

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PyTree, ScalarLike

from .._checks import refuse_other_keys
from .._types import Key, Scalar, Times
from ._dyadic import Places, places
from ._rounded import rounded

Rows = Float[Array, "_ m"]  # one row per time
Law = tuple[Float[Array, "..."], Float[Array, "..."]]
Draw = Callable[[Int[Array, "_"], Int[Array, "_"]], Rows]
_TANHC = (1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925)


def gauss_markov(key: Key, like: PyTree, ts: Times, *, rate: Scalar, unit: float, depth: int) -> PyTree:
    """X at the times `ts` for every floating array (or `ShapeDtypeStruct`) in `like`, with a leading time axis.

    Linear below the finest level, unit/2^depth. Other leaves are None. Times that are traced cost all levels, and a
    loop of unknown length: the derivative in `rate` is then forward mode only.
    """
    refuse_other_keys(key, "key", many=False)
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jr.wrap_key_data(key)
    return _draw(key, _floats(like), places(ts, unit, depth), rate, unit)


def _floats(like: PyTree) -> PyTree:
    shapes = eqx.filter_eval_shape(lambda: like)
    return eqx.filter(shapes, lambda s: isinstance(s, jax.ShapeDtypeStruct) and jnp.issubdtype(s.dtype, jnp.floating))


@eqx.filter_jit
def _draw(key: Key, like: PyTree, where: Places, rate: Scalar, unit: float) -> PyTree:
    # Behind the barrier a known rate is not folded at compile time, by a library that rounds otherwise.
    rate = jax.lax.optimization_barrier(rate)
    leaves, structure = jax.tree.flatten(like)
    sizes = [math.prod(leaf.shape) for leaf in leaves]
    dtype = jnp.result_type(jnp.float32, *(leaf.dtype for leaf in leaves))
    transition = _transition(rate, unit, dtype)
    bridge = _bridge(rate, jnp.asarray(unit / 2.0 ** np.arange(where.levels)), dtype)
    rows = _rows(key, sum(sizes), dtype, where, transition, bridge)
    parts = jnp.split(rows, list(accumulate(sizes))[:-1], axis=1)
    noise = [part.reshape(-1, *leaf.shape).astype(leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, noise)


def _rows(key: Key, size: int, dtype: jnp.dtype, where: Places, transition: Law, bridge: Law) -> Rows:
    def draw(interval: Int[Array, "_"], node: Int[Array, "_"]) -> Rows:
        return _normals(key, interval, node, size, dtype)

    if where.intervals is None:
        dense = 0
        left, right = _search(where.interval, transition, draw)
    else:
        dense, nodes = where.dense_levels, 2**where.dense_levels
        # The number of every node of the first levels, of the first interval, then of the second, and so on.
        number = jnp.arange(where.intervals * nodes, dtype=jnp.int32)
        z = draw(number // nodes, number % nodes)
        ends = _ends(z[::nodes], transition)
        left, right = ends[where.interval], ends[where.interval + 1]
        left, right = _halve(where, 0, dense, left, right, bridge, lambda interval, node: z[interval * nodes + node])
    left, right = _halve(where, dense, where.levels, left, right, bridge, draw)
    return left + rounded(where.weight.astype(dtype)[:, None] * (right - left))


def _ends(z: Rows, transition: Law) -> Rows:
    """X at every multiple of the unit, from the normals of the intervals."""
    pull, spread = transition

    def step(x: Array, z: Array) -> tuple[Array, Array]:
        x = rounded(pull * x) + rounded(spread * z)
        return x, x

    zero = jnp.zeros_like(z[0])
    return jnp.concatenate([zero[None], jax.lax.scan(step, zero, z)[1]])


def _search(interval: Int[Array, "s"], transition: Law, draw: Draw) -> tuple[Rows, Rows]:
    """X at both ends of the interval of every time, where the number of intervals is not known when tracing."""
    pull, spread = transition
    shape = jax.eval_shape(draw, interval, interval)
    zeros = jnp.zeros(shape.shape, shape.dtype)

    def step(carry: tuple) -> tuple:
        k, x, left, right = carry
        later = rounded(pull * x) + rounded(spread * draw(k, jnp.zeros_like(k))[0])
        here = (interval == k)[:, None]
        return k + 1, later, jnp.where(here, x, left), jnp.where(here, later, right)

    start = (jnp.zeros(1, jnp.int32), zeros[0], zeros, zeros)
    _, _, left, right = jax.lax.while_loop(lambda carry: carry[0][0] <= interval.max(), step, start)
    return left, right


def _halve(where: Places, first: int, last: int, left: Rows, right: Rows, bridge: Law, draw: Draw) -> tuple[Rows, Rows]:
    """X at both ends of the cell of every time at level `last`, from the ends of its cell at level `first`."""
    if first == last:
        return left, right

    def halve(carry: tuple, now: tuple) -> tuple[tuple, None]:
        left, right, node = carry
        (pull, spread), shift = now
        middle = rounded(pull * (left + right)) + rounded(spread * draw(where.interval, node))
        upper = (where.position >> shift) & 1
        in_upper = (upper == 1)[:, None]
        return (jnp.where(in_upper, middle, left), jnp.where(in_upper, right, middle), 2 * node + upper), None

    # Nodes are numbered as in a heap: 1 is the midpoint of the interval, 2 and 3 those of its halves. 0 is its end.
    node = 2**first + (where.position >> (where.levels - first))
    shifts = where.levels - 1 - jnp.arange(first, last, dtype=jnp.int32)
    laws = (bridge[0][first:last], bridge[1][first:last])
    (left, right, _), _ = jax.lax.scan(halve, (left, right, node), (laws, shifts))
    return left, right


def _transition(rate: Scalar, h: ScalarLike, dtype: jnp.dtype) -> Law:
    """The law of X(t+h) given X(t): e^{-rh} and √((1 - e^{-2rh})/(2r)), 1 and √h at r = 0."""
    z = rate * h
    variance = h * _tanhc(z) * (1 + jnp.exp(-2 * z)) / 2
    return jnp.exp(-z).astype(dtype), jnp.sqrt(variance).astype(dtype)


def _bridge(rate: Scalar, h: Float[Array, "j"], dtype: jnp.dtype) -> Law:
    """The law of X(t+h/2) given X(t) and X(t+h): 1/(2 cosh(rh/2)) and √(tanh(rh/2)/(2r)), ½ and √h/2 at r = 0."""
    z = rate * h / 2
    decay = jnp.exp(-z)  # in place of cosh, which overflows
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


def _normals(key: Key, interval: Int[Array, "_"], node: Int[Array, "_"], size: int, dtype: jnp.dtype) -> Rows:
    """The normals of nodes of intervals: from the key folded with the interval, then with the node."""

    def fold(keys: Array, numbers: Int[Array, "_"]) -> tuple[Array, None]:
        return jax.vmap(jr.fold_in)(keys, numbers), None

    # Two folds in a loop, and rows drawn flat, because compiling the generator is most of the cost of a first call.
    keys, _ = jax.lax.scan(fold, jnp.broadcast_to(key, interval.shape), jnp.stack([interval, node]))
    return rounded(jax.vmap(lambda key: jr.normal(key, (size,), dtype))(keys))
