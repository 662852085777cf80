"""The unit sphere of R^d with its geodesic distance."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .._checks import concrete
from .._types import Key, Tokens
from ._angles import angle_over_sine, cos_and_sinc, squared_angle
from ._manifold import AbstractManifold
from ._norm import norm, unit
from ._size import same_width, size


class Sphere(AbstractManifold):
    """The unit sphere S^{d-1} of R^d, `d >= 2`.

    Angles come from the chords |x - y| and |x + y| (2 atan2 of the two), which keeps every digit near 0 and near π,
    where the arccosine of ⟨x, y⟩ keeps half of them. Raises `ValueError` if `d` is not an integer of at least 2.
    """

    d: int = eqx.field(static=True)

    def __init__(self, d: int):
        self.d = size(d, "d", 2)

    def project(self, x: Float[Array, "*#batch d"], v: Float[Array, "*#batch d"]) -> Float[Array, "*batch d"]:
        """P_x v = v - ⟨x, v⟩x."""
        same_width(self.d, "Sphere", x=x, v=v)
        return v - jnp.sum(x * v, axis=-1, keepdims=True) * x

    def retract(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """x/|x|; the zero vector, which has no nearest point, stays 0 with zero derivatives."""
        same_width(self.d, "Sphere", x=x)
        return unit(x)

    def defect(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """||x| - 1|; infinite for the zero vector and for one that is not finite."""
        same_width(self.d, "Sphere", x=x)
        length = norm(x)
        return jnp.where((length > 0) & jnp.isfinite(length), jnp.abs(length - 1), jnp.inf)

    def exp(self, x: Float[Array, "*#batch d"], v: Float[Array, "*#batch d"]) -> Float[Array, "*batch d"]:
        """End of the great circle that leaves `x` with the tangent part of `v`, at time 1."""
        v = self.project(x, v)
        cos, sinc = cos_and_sinc(jnp.sum(v * v, axis=-1, keepdims=True))
        return unit(cos * x + sinc * v)

    def log(self, x: Float[Array, "*#batch d"], y: Float[Array, "*#batch d"]) -> Float[Array, "*batch d"]:
        """Velocity at `x` of the shortest great circle that reaches `y` at time 1.

        An antipodal pair (|x + y| within rounding of 0) has no such circle: `ValueError` with the index of the
        pair, or under a transformation, where values are not known yet, an error from `eqx.error_if` at run time.
        """
        same_width(self.d, "Sphere", x=x, y=y)
        minus, plus = y - x, y + x
        near, far = norm(minus), norm(plus)
        antipodal = (far <= 8 * jnp.finfo(far.dtype).eps) & (near > 1)
        minus = _refuse_antipodal(minus, antipodal)
        # P_x y is P_x(y - x) and P_x(y + x): the shorter one loses no digits.
        tangent = self.project(x, jnp.where((near <= far)[..., None], minus, plus))
        chord2 = jnp.sum(minus * minus, axis=-1)
        return angle_over_sine(chord2, 2 * jnp.atan2(near, far), norm(tangent))[..., None] * tangent

    def distance(self, x: Float[Array, "*#batch d"], y: Float[Array, "*#batch d"]) -> Float[Array, "*batch"]:
        """Angle between `x` and `y`, in [0, π]; its derivatives are 0 at x = y and at y = -x (the cut locus)."""
        same_width(self.d, "Sphere", x=x, y=y)
        return 2 * jnp.atan2(norm(x - y), norm(x + y))

    def squared_distance(self, x: Float[Array, "*#batch d"], y: Float[Array, "*#batch d"]) -> Float[Array, "*batch"]:
        """Squared angle; smooth at x = y, with gradient 0 and the exact Hessian there."""
        minus = x - y
        return squared_angle(jnp.sum(minus * minus, axis=-1), self.distance(x, y))

    def uniform(self, key: Key, n: int) -> Tokens:
        """`n` independent uniform points, `(n, d)`, in JAX's default floating dtype."""
        return unit(jr.normal(key, (size(n, "n", 1), self.d)))


def _refuse_antipodal(x: Float[Array, "*batch d"], antipodal: Array) -> Float[Array, "*batch d"]:
    known = concrete(antipodal)
    advice = "an antipodal pair has no unique shortest geodesic; move one of the two points, or use distance."
    if known is None:
        return eqx.error_if(x, antipodal, f"log of the sphere: {advice}")
    if known.any():
        index = tuple(int(i) for i in np.argwhere(known)[0])
        raise ValueError(f"log of the sphere at pair {index or '()'}: {advice}")
    return x
