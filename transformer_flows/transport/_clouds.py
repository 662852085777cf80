"""Arguments shared by the distances between clouds, and the root that they end with."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import concrete, refuse_non_finite
from .._types import Scalar
from ..geometry import AbstractManifold

Cloud = Float[Array, "_ _"]  # sizes are compared below, so that an error can name them


def check_clouds(x: Cloud, y: Cloud, manifold: AbstractManifold) -> None:
    """Raise `ValueError` unless both are tokens `(n, d)` of the manifold, at least one, all finite."""
    for name, cloud in (("x", x), ("y", y)):
        if cloud.ndim != 2 or cloud.shape[0] == 0 or cloud.shape[1] != manifold.d:
            raise ValueError(f"{name} must be tokens (n, {manifold.d}) with n >= 1; got shape {cloud.shape}.")
        if concrete(cloud) is not None:
            refuse_non_finite(cloud, name)


def check_one_size(x: Cloud, y: Cloud) -> None:
    """Raise `ValueError` unless both clouds have as many tokens."""
    if x.shape != y.shape:
        raise ValueError(f"x and y must be clouds of one size; got {x.shape[0]} and {y.shape[0]} tokens.")


def refuse_traced_non_finite(x: Cloud, name: str) -> Cloud:
    """`x`; where its values become known only in the run, an error then if one of them is not finite."""
    if concrete(x) is not None:
        return x
    return eqx.error_if(x, ~jnp.isfinite(jax.lax.stop_gradient(x)).all(), f"{name} must be finite.")


def root(square: Scalar) -> Scalar:
    """√square, 0 for what rounding left below 0. Its derivative at 0, where none exists, is the subgradient 0."""
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)
