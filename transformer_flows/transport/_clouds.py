"""Arguments shared by the distances between clouds, and the root that they end with."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import concrete, refuse_non_finite, refuse_other_type
from .._types import Scalar, as_float
from ..geometry import AbstractManifold, refuse_off_manifold

Cloud = Float[Array, "_ _"]  # sizes are compared below, so that an error can name them
CloudLike = Any  # arrays of any real dtype and lists, converted below


def as_clouds(x: Any, y: Any, manifold: Any) -> tuple[Cloud, Cloud]:
    """Both clouds as floating arrays.

    Raises `ValueError` unless both are tokens `(n, d)` on the manifold, at least one, all finite.
    """
    refuse_other_type(manifold, "manifold", AbstractManifold, "a space such as Sphere(3)")
    return _as_cloud(x, "x", manifold), _as_cloud(y, "y", manifold)


def _as_cloud(x: Any, name: str, manifold: AbstractManifold) -> Cloud:
    x = as_float(x)
    if x.ndim != 2 or x.shape[0] == 0 or x.shape[1] != manifold.d:
        raise ValueError(f"{name} must be tokens (n, {manifold.d}) with n >= 1; got shape {x.shape}.")
    value = concrete(x)
    if value is not None:
        refuse_non_finite(value, name)
        refuse_off_manifold(value, name, manifold)
    return x


def as_clouds_of_one_size(x: Any, y: Any, manifold: Any) -> tuple[Cloud, Cloud]:
    """The same. Raises `ValueError` too unless both have as many tokens."""
    x, y = as_clouds(x, y, manifold)
    if x.shape != y.shape:
        raise ValueError(f"x and y must be clouds of one size; got {x.shape[0]} and {y.shape[0]} tokens.")
    return x, y


def refuse_traced_non_finite(x: Cloud, name: str) -> Cloud:
    """`x`; where its values become known only in the run, an error then if one of them is not finite."""
    if concrete(x) is not None:
        return x
    return eqx.error_if(x, ~jnp.isfinite(jax.lax.stop_gradient(x)).all(), f"{name} must be finite.")


def root(square: Scalar) -> Scalar:
    """√square, 0 for what rounding left below 0; NaN stays NaN.

    The root has no derivative at 0, where its smallest subgradient, 0, is taken.
    """
    zero = square <= 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, square)))
