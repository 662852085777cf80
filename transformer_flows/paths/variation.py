"""How far a path moves in all: ∫ |Θ'| dt up to a time, and an estimate of what is still to come."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._types import Knots, Scalar, TimesLike
from ._knots import knots
from ._path import AbstractPath, AbstractProcess

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
BLOCKS = 8


class Variation(NamedTuple):
    """∫ |Θ'| dt over the times given, and the estimated rest beyond them, inf where the path does not come to rest."""

    total: float
    tail: float

    @property
    def integrable(self) -> bool:
        """Whether all of it seems to be finite."""
        return bool(np.isfinite(self.total + self.tail))


def variation(path: AbstractPath | AbstractProcess, ts: TimesLike) -> Variation:
    """Length of `path` from ts[0] to ts[-1], |Θ'| being the root of the sum of squares over all its arrays.

    Smooth parts by Gauss' rule on every interval of `ts` (take them fine: where |Θ'| meets 0 the rule is of first
    order only), lines and jumps exactly. For a path that moves by noise the length is that of the lines between its
    knots, which has no limit as they get denser.

    The tail is an extrapolation, not a bound: exponential or power decay, whichever fits the mean speed in eight
    blocks of the last half of the times better. It is inf unless the speed falls there by more than a factor of 2 and
    by more than its scatter about the fit: from T/2 to T a speed like 1/t, whose integral diverges, falls by 2. So
    a decay too slow to be seen by ts[-1] counts as none, and oscillations should be short against the times. A path
    with a grid is judged in the same way, by the decay up to ts[-1], although it stands still after its last knot.

    Works on the host. Raises `ValueError` for times that are not finite or do not increase strictly, and for a process
    that is not drawn.
    """
    if isinstance(path, AbstractProcess):
        raise ValueError(f"path must be drawn; got a {type(path).__name__} that is not. Draw it: path.sample(key, ts).")
    ts = np.asarray(knots(ts, "ts", least=2))
    smooth = eqx.filter_eval_shape(path.derivative, ts[0]) is not None
    ends = _with_knots(path, ts if smooth or path.grid is None else ts[[0, -1]])
    lengths = np.asarray(_lengths(path, jnp.asarray(ends)), float)
    travelled = np.concatenate([[0.0], np.cumsum(lengths)])
    jumps_alone = not smooth and path.jumps is not None
    # a jump counts for the layer that it begins, or the last layer of all would seem to stand still
    seen = np.concatenate([[0.0], travelled[:-1]]) if jumps_alone else travelled
    return Variation(float(travelled[-1]), _tail(ends, seen))


def _with_knots(path: AbstractPath, ts: np.ndarray) -> np.ndarray:
    """`ts` and those knots of the path that lie between its ends."""
    parts = [np.asarray(part) for part in (path.grid, path.jumps) if part is not None]
    inside = [part[(part > ts[0]) & (part < ts[-1])] for part in parts]
    return np.unique(np.concatenate([ts, *inside]))


@eqx.filter_jit
def _lengths(path: AbstractPath, ends: Knots) -> Float[Array, "_"]:
    """Length of the path on every interval, a jump at its right end included."""
    before, after = ends[:-1], ends[1:]
    if eqx.filter_eval_shape(path.derivative, ends[0]) is None:
        return jax.vmap(lambda a, b: _distance(path(a), path(b)))(before, after)
    speed = lambda t: _norm(path.derivative(t))
    half = (after - before) / 2
    times = before[:, None] + half[:, None] * (1 + jnp.asarray(NODES, ends.dtype))[None]
    lengths = half * (jax.vmap(jax.vmap(speed))(times) @ jnp.asarray(WEIGHTS, half.dtype))
    if path.jumps is None:
        return lengths
    return lengths + jax.vmap(lambda a, b: _distance(path(jnp.nextafter(b, a)), path(b)))(before, after)


def _distance(before: PyTree, after: PyTree) -> Scalar:
    arrays = (eqx.filter(tree, eqx.is_inexact_array) for tree in (before, after))
    return _norm(jax.tree.map(lambda a, b: b - a, *arrays))


def _norm(tree: PyTree) -> Scalar:
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in leaves))


def _tail(ends: np.ndarray, travelled: np.ndarray) -> float:
    """∫ |Θ'| beyond the last end, from the better of two fits to the lengths of the blocks of the last half."""
    edges = np.linspace((ends[0] + ends[-1]) / 2, ends[-1], BLOCKS + 1)
    lengths = np.diff(np.interp(edges, ends, travelled))
    if not lengths.any():
        return 0.0
    width, end = edges[1] - edges[0], ends[-1] - ends[0]
    log_lengths = np.log(np.maximum(lengths, lengths[lengths > 0].min()))
    centres = (edges[1:] + edges[:-1]) / 2 - ends[0]
    decay, block_after, scatter = _line(centres, log_lengths, end + width / 2)
    power, block_at_end, scatter_of_power = _line(np.log(centres), log_lengths, np.log(end))
    # the power judges the decay for both: above 1 is a fall by more than 2 over the last half
    if power <= 1 or power * np.log(2) <= 2 * min(scatter, scatter_of_power):
        return np.inf
    if scatter <= scatter_of_power:
        return float(block_after / -np.expm1(-decay * width))  # lengths of blocks are a geometric series
    return float(block_at_end / width * end / (power - 1))


def _line(clock: np.ndarray, log_lengths: np.ndarray, then: float) -> tuple[float, float, float]:
    """The rate at which the logarithms fall, the length that their line gives `then`, and their scatter about it."""
    slope, at_zero = np.polyfit(clock, log_lengths, 1)
    scatter = np.std(log_lengths - (at_zero + slope * clock))
    return float(-slope), float(np.exp(at_zero + slope * then)), float(scatter)
