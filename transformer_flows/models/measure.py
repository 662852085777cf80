"""What is attended to: weighted points."""

import equinox as eqx
from jaxtyping import Array, Bool, Float


class Measure(eqx.Module):
    """A discrete measure on R^d. Points are `(m, d)`.

    `weights` `(m,)` may be signed (None: every valid point carries the same mass and the total mass is 1).
    `mask` `(m,)` is False at points that do not exist (padding); None: all exist.
    """

    points: Float[Array, "m d"]
    weights: Float[Array, "m"] | None = None
    mask: Bool[Array, "m"] | None = None
