"""The contract of a flow: a vector field on a manifold, called as flow(t, x)."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from .._checks import concrete
from .._types import Scalar, Tokens, Valid
from ..geometry import AbstractManifold


class AbstractFlow(eqx.Module):
    """A vector field. A path or a process among its leaves is found by type."""

    manifold: eqx.AbstractVar[AbstractManifold]

    @abstractmethod
    def __call__(self, t: Scalar, x: PyTree[Array]) -> PyTree[Array]:
        """Tangent velocity at time `t` and state `x`."""

    @abstractmethod
    def check(self, x0: PyTree[Array]) -> None:
        """Raise `ValueError` if a solve cannot start from `x0`; called before every solve."""


# How far from the manifold a start may be and still be taken as rounding, and retracted without a word.
_OFF_MANIFOLD = 1e-3


def check_tokens(manifold: AbstractManifold, x0: Tokens, existing: Valid | None) -> None:
    """Raise `ValueError` naming the first token that is non-finite, zero, or off the manifold.

    Tokens that do not exist (padding) may hold anything finite.
    """
    if x0.ndim != 2 or x0.shape[1] != manifold.d or x0.shape[0] == 0:
        raise ValueError(f"x0 must be tokens of shape (n, {manifold.d}) with n >= 1; got shape {x0.shape}.")
    if existing is not None and existing.shape != x0.shape[:1]:
        raise ValueError(f"the padding mask has shape {existing.shape}, but x0 has {x0.shape[0]} tokens.")
    value = concrete(x0)
    if value is None:
        return
    bad = np.flatnonzero(~np.isfinite(value).all(axis=-1))
    if bad.size:
        raise ValueError(f"x0 must be finite; token {bad[0]} is {value[bad[0]]}.")
    exists = concrete(existing)
    defect = np.asarray(manifold.defect(jnp.asarray(x0)))
    off = np.flatnonzero((defect > _OFF_MANIFOLD) & (True if exists is None else exists))
    if off.size:
        name = type(manifold).__name__
        raise ValueError(
            f"x0 must lie on {name}({manifold.d}); token {off[0]} is {value[off[0]]}, at distance "
            f"{defect[off[0]]:.2g}. Bring tokens onto it with manifold.retract(x0); a zero token has no nearest point."
        )
