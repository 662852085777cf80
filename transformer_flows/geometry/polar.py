"""Tokens of any length, as a direction and a radius: the states of flows under a normalisation."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete
from .._types import Tokens, as_float
from ._manifold import AbstractSpace
from ._norm import norm
from ._off import refuse_off_manifold
from .sphere import Sphere


class Polar(eqx.Module):
    """Tokens r_k θ_k: directions `theta` `(n, d)` on the unit sphere, lengths `radius` `(n,)`."""

    theta: Tokens
    radius: Float[Array, "n"]

    @property
    def tokens(self) -> Float[Array, "*batch n d"]:
        """r_k θ_k `(n, d)`, with a leading axis of times for the states of a solution."""
        return self.radius[..., None] * self.theta


class PolarSpace(AbstractSpace):
    """R^d without the origin, in polar coordinates over `sphere`."""

    sphere: Sphere

    def retract(self, x: Polar) -> Polar:
        """Directions to the sphere; lengths as they are, NaN where they are not positive: those have no direction."""
        return Polar(self.sphere.retract(x.theta), jnp.where(x.radius > 0, x.radius, jnp.nan))

    def state(self, theta: Tokens, radius: ArrayLike = 1.0) -> Polar:
        """Directions `(n, d)` with lengths `(n,)`, or one for all.

        Raises `ValueError` for directions off the sphere, and lengths that are not positive and finite.
        """
        theta, radius = as_float(theta), as_float(radius)
        known = concrete(theta)
        if known is not None:
            refuse_off_manifold(known, "theta", self.sphere)
        value = concrete(radius)
        if value is not None and not ((value > 0) & (value < np.inf)).all():
            raise ValueError(f"radius must be positive and finite; got {value}.")
        if radius.shape not in ((), theta.shape[:1]):
            raise ValueError(f"radius must be one number or of shape ({theta.shape[0]},); got {radius.shape}.")
        return Polar(theta, jnp.broadcast_to(radius, theta.shape[:1]).astype(theta.dtype))

    def of(self, x: Tokens) -> Polar:
        """Tokens `(n, d)` of R^d in polar coordinates. Raises `ValueError` for a zero token."""
        x = as_float(x)
        return self.state(self.sphere.retract(x), norm(x))
