"""Blocks of queries, one after the other: memory of a block of scores instead of all of them."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Bool, Float, Int

from ..masks import AbstractMask
from ._backend import AbstractBackend
from ._charges import charges, radius, results, visible
from ._peak import peak
from ._tilt import HIGHEST, shifted, weigh
from .exp2 import LN2, LOG2E


class Blockwise(AbstractBackend):
    """Tilted sums over blocks of `block` queries (counted over all heads): block·m numbers in memory.

    Derivatives of every order and mode recompute the scores block by block, so that they need no more memory.
    Signed weights are allowed. A mass that they make negative has log mass NaN; the mean is right all the same.
    """

    block: int = eqx.field(static=True, default=256)

    def __check_init__(self):
        if self.block < 1:
            raise ValueError(f"block must be at least 1; got {self.block}.")

    def __call__(self, queries, measure, values, mask=None):
        h, r, _ = queries.shape
        c = charges(measure, values, mask, queries.dtype)
        blocks, index = _split(LOG2E * queries, self.block)
        sums, shift = _sums(blocks, index, c.points, c.charges, _Sight(c.exists, mask, radius(c.points)))
        sums = sums.reshape(-1, sums.shape[-1])[: h * r].reshape(h, r, -1)
        shift = shift.reshape(-1)[: h * r].reshape(h, r)
        return results(sums, shift, c.log_count)

    def peak(self, queries, measure, values, mask=None):
        h, r, _ = queries.shape
        c = charges(measure, values, mask, queries.dtype)
        blocks, index = _split(queries, self.block)

        @jax.checkpoint
        def one(block):
            q, i = block
            largest, mean = peak(q[None], c, visible(c.exists, mask, i, c.points.shape[1]))
            return largest[0], mean[0]

        largest, mean = lax.map(one, (blocks, index))
        return largest.reshape(-1)[: h * r].reshape(h, r), mean.reshape(-1, mean.shape[-1])[: h * r].reshape(h, r, -1)


def _split(queries: Float[Array, "h r d"], block: int) -> tuple[Float[Array, "b q d"], Int[Array, "b q"]]:
    """Queries of all heads in blocks, the last one padded with zeros, and the index of each within its head."""
    h, r, d = queries.shape
    block = min(block, max(h * r, 1))
    extra = -(h * r) % block
    flat = jnp.pad(queries.reshape(h * r, d), ((0, extra), (0, 0)))
    index = jnp.arange(h * r + extra) % max(r, 1)
    return flat.reshape(-1, block, d), index.reshape(-1, block)


class _Sight(eqx.Module):
    """What decides which points a query sees, and the scale of the scores; no derivative passes through it."""

    exists: Bool[Array, "m"] | None
    mask: AbstractMask | None
    radius: Float[Array, ""]

    def tilt(self, q, index, points, shift=None):
        return shifted(q, points, visible(self.exists, self.mask, index, points.shape[1]), self.radius, shift)


@jax.custom_jvp
def _sums(queries, index, points, charge, sight: _Sight):
    """Σ_j 2^{score - shift} charge_j for every query of every block, and the shift, on which no result depends."""

    def one(block):
        q, i = block
        tilt, shift = sight.tilt(q, i, points)
        return weigh(tilt, charge), shift

    return lax.map(one, (queries, index))


@functools.partial(_sums.defjvp, symbolic_zeros=True)
def _sums_jvp(primals, tangents):
    """Tangents at fixed shift, block by block from recomputed exponentials.

    The automatic transpose of this map is the backward pass: it recomputes too, and accumulates the gradients of points
    and charges over the blocks.
    """
    queries, index, points, charge, sight = primals
    d_queries, _, d_points, d_charge, _ = (None if isinstance(t, SymbolicZero) else t for t in tangents)
    # d 2^s = 2^s ln2 ds; the constant is multiplied in where there are few numbers.
    d_queries = None if d_queries is None else LN2 * d_queries
    d_points = None if d_points is None else LN2 * d_points
    sums, shift = _sums(*primals)

    @jax.checkpoint
    def one(block):
        q, i, top, dq = block
        tilt, _ = sight.tilt(q, i, points, top)
        parts = [] if d_charge is None else [weigh(tilt, d_charge)]
        d_scores = [] if dq is None else [jnp.matmul(dq, points, precision=HIGHEST)]
        d_scores += [] if d_points is None else [jnp.matmul(q, d_points, precision=HIGHEST)]
        parts += [weigh(tilt * sum(d_scores), charge)] if d_scores else []
        return sum(parts)

    if d_queries is None and d_points is None and d_charge is None:
        d_sums = jnp.zeros_like(sums)
    else:
        d_sums = lax.map(one, (queries, index, lax.stop_gradient(shift), d_queries))
    return (sums, shift), (d_sums, jnp.zeros_like(shift))
