"""Which tokens, and which pairs of different tokens, there are."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from .._types import Tokens, Valid
from ..dynamics import AbstractFlow, existing_tokens


def exists_in(x: Tokens, flow: AbstractFlow) -> Valid:
    """True for every token that exists."""
    existing = existing_tokens(flow)
    return jnp.ones(x.shape[0], bool) if existing is None else existing


def pair_exists(x: Tokens, flow: AbstractFlow) -> Bool[Array, "n n"]:
    """True at i < j where both tokens exist."""
    exists = exists_in(x, flow)
    return jnp.triu(exists[:, None] & exists[None, :], k=1)
