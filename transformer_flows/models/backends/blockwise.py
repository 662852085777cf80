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
from ._charges import charges, results, visible
from ._peak import peak

_HIGHEST = lax.Precision.HIGHEST


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
        blocks, index = _split(queries, self.block)
        sums, shift = _sums(blocks, c.points, c.charges, index, _Visible(c.exists, mask))
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
            largest, mean = peak(q[None], c, visible(c.exists, mask, i, c.points.shape[0]))
            return largest[0], mean[0]

        largest, mean = lax.map(one, (blocks, index))
        return largest.reshape(-1)[: h * r].reshape(h, r), mean.reshape(-1, mean.shape[-1])[: h * r].reshape(h, r, -1)


def _split(
    queries: Float[Array, "h r d"], block: int
) -> tuple[Float[Array, "b q d"], Int[Array, "b q"]]:
    """Queries of all heads in blocks, the last one padded with zeros, and the index of each within its head."""
    h, r, d = queries.shape
    block = min(block, max(h * r, 1))
    extra = -(h * r) % block
    flat = jnp.pad(queries.reshape(h * r, d), ((0, extra), (0, 0)))
    index = jnp.arange(h * r + extra) % max(r, 1)
    return flat.reshape(-1, block, d), index.reshape(-1, block)


class _Visible(eqx.Module):
    """Everything that decides what a query sees; no derivative passes through it."""

    exists: Bool[Array, "m"] | None
    mask: AbstractMask | None

    def tilt(self, q, index, points, shift=None):
        """e^{score - shift} of one block against all points, and the shift: the row maximum unless given."""
        scores = jnp.matmul(q, points.T, precision=lax.Precision.HIGHEST)
        seen = visible(self.exists, self.mask, index, points.shape[0])
        scores = scores if seen is None else jnp.where(seen, scores, -jnp.inf)
        if shift is None:
            shift = lax.stop_gradient(jnp.max(scores, axis=-1, initial=-jnp.inf))
            shift = jnp.where(shift == -jnp.inf, 0, shift)
        return jnp.exp(scores - shift[:, None]), shift


@jax.custom_jvp
def _sums(blocks, points, charge, index, what: _Visible):
    """Σ_j e^{score - shift} charge_j for every query, and the shift, on which no result depends."""

    def one(block):
        tilt, shift = what.tilt(*block, points)
        return _dot(tilt, charge), shift

    return lax.map(one, (blocks, index))


@functools.partial(_sums.defjvp, symbolic_zeros=True)
def _sums_jvp(primals, tangents):
    """Tangents at fixed shift, block by block from the recomputed exponentials.

    Key and charge tangents enter transposed, (d, m) and (c, m): the automatic transpose then accumulates their
    gradients in that layout, several times faster than (m, d) on CPU.
    """
    blocks, points, charge, index, what = primals
    d_blocks, d_points, d_charge = tangents[:3]
    sums, shift = _sums(*primals)
    moved = not isinstance(d_blocks, SymbolicZero)
    d_points = None if isinstance(d_points, SymbolicZero) else d_points.T
    d_charge = None if isinstance(d_charge, SymbolicZero) else d_charge

    @jax.checkpoint
    def one(block):
        q, i, top, dq = block
        tilt, _ = what.tilt(q, i, points, top)
        out = 0 if d_charge is None else _dot(tilt, d_charge)
        if moved or d_points is not None:
            by_query = jnp.matmul(dq, points.T, precision=_HIGHEST) if moved else 0
            by_point = jnp.matmul(q, d_points, precision=_HIGHEST) if d_points is not None else 0
            out = out + _dot(tilt * (by_query + by_point), charge)
        return out

    d_sums = lax.map(one, (blocks, index, lax.stop_gradient(shift), d_blocks if moved else None))
    return (sums, shift), (d_sums, jnp.zeros_like(shift))


def _dot(tilt: Float[Array, "r m"], charge: Float[Array, "c m"]) -> Float[Array, "r c"]:
    return jnp.matmul(tilt, charge.T, precision=_HIGHEST)
