"""Which tokens and pairs of different tokens there are, and how far apart they lie."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._types import Tokens, Valid
from ..dynamics import AbstractFlow, existing_tokens


def exists_in(x: Array, flow: AbstractFlow) -> Valid:
    """True for every token that exists. Raises `ValueError` for a state that is not tokens."""
    if x.ndim != 2:
        raise ValueError(f"this observable needs tokens of shape (n, d); the state has shape {x.shape}.")
    existing = existing_tokens(flow)
    return jnp.ones(x.shape[0], bool) if existing is None else existing


def pair_exists(x: Tokens, flow: AbstractFlow) -> Bool[Array, "n n"]:
    """True at i < j where both tokens exist."""
    exists = exists_in(x, flow)
    return jnp.triu(exists[:, None] & exists[None, :], k=1)


def squared_distances(x: Float[Array, "a d"], y: Float[Array, "b d"]) -> Float[Array, "a b"]:
    """|x_i - y_j|² in R^d, accurate to rounding for close tokens."""

    # one coordinate after the other: reductions over a short last axis are not vectorised
    def add(total, coordinate):
        of_x, of_y = coordinate
        return total + (of_x[:, None] - of_y[None, :]) ** 2, None

    zero = jnp.zeros((x.shape[0], y.shape[0]), x.dtype)
    return jax.lax.scan(add, zero, (x.T, y.T), unroll=4)[0]
