"""Which tokens, and which pairs of different tokens, there are."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from .._types import Tokens, Valid
from ..dynamics import AttentionFlow


def existing_tokens(x: Tokens, flow: AttentionFlow) -> Valid:
    return jnp.ones(x.shape[0], bool) if flow.existing is None else flow.existing


def pair_exists(x: Tokens, flow: AttentionFlow) -> Bool[Array, "n n"]:
    """True at i < j where both tokens exist."""
    exists = existing_tokens(x, flow)
    return jnp.triu(exists[:, None] & exists[None, :], k=1)
