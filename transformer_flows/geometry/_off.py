"""Points that should lie on a space and do not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ._manifold import AbstractManifold

# How far from the space a point may be and still be taken for rounding, and retracted without a word.
_OFF = 1e-3


def refuse_off_manifold(
    x: Float[np.ndarray, "n d"], name: str, manifold: AbstractManifold, existing: Bool[np.ndarray, "n"] | None = None
) -> None:
    """Raise `ValueError` naming the first of the tokens that exist (None: all) which is off the manifold."""
    with jax.ensure_compile_time_eval():  # the values are known inside jit too
        defect = np.asarray(_defect(manifold, jnp.asarray(x)))
    off = np.flatnonzero((defect > _OFF) & (True if existing is None else existing))
    if off.size:
        raise ValueError(
            f"{name} must lie on {type(manifold).__name__}({manifold.d}); token {off[0]} is {x[off[0]]}, at distance "
            f"{defect[off[0]]:.2g}. Bring tokens onto it with manifold.retract({name}); a zero token has no nearest "
            "point."
        )


@eqx.filter_jit
def _defect(manifold: AbstractManifold, x: Float[Array, "n d"]) -> Float[Array, "n"]:
    return manifold.defect(x)
