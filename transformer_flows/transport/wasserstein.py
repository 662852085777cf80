"""The Wasserstein distance of two clouds of equal size, exactly."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from .._types import Scalar
from ..geometry import AbstractManifold
from ._clouds import Cloud, CloudLike, as_clouds_of_one_size, root


def wasserstein(x: CloudLike, y: CloudLike, manifold: AbstractManifold) -> Scalar:
    """W_2(μ, ν) = min_σ ((1/n) Σ_i d(x_i, y_σ(i))²)^{1/2} of the clouds `x` and `y`, both `(n, d)`.

    d is the distance of `manifold`: geodesic on `Sphere(d)`, that of the chords with `Euclidean(d)`. Exact, by the
    assignment problem of `optimal_matching`. Differentiable with the matching held fixed, which is the derivative
    wherever the best matching is unique; at W_2 = 0 it is 0.

    Raises `ValueError` for clouds of other sizes or dimensions, empty ones, and tokens that are not finite.
    """
    x, y = as_clouds_of_one_size(x, y, manifold)
    return matched_distance(x, y[matching_of(x, y, manifold)], manifold)


def matched_distance(x: Cloud, y: Cloud, manifold: AbstractManifold) -> Scalar:
    """The root mean square distance of token i of `x` from token i of `y`."""
    return root(jnp.mean(manifold.squared_distance(x, y)))


def optimal_matching(x: CloudLike, y: CloudLike, manifold: AbstractManifold) -> Int[Array, "_"]:
    """The σ that makes Σ_i d(x_i, y_σ(i))² least: token i of `x` goes to token σ(i) of `y`.

    Work O(n³) at worst, on the host, and memory O(n²), under `jit` and `vmap` too. Constant to every derivative.
    Raises as `wasserstein` does.
    """
    return matching_of(*as_clouds_of_one_size(x, y, manifold), manifold)


def matching_of(x: Cloud, y: Cloud, manifold: AbstractManifold) -> Int[Array, "_"]:
    """`optimal_matching` of clouds that are checked already."""
    x, y = jax.lax.stop_gradient((x, y))
    cost = manifold.squared_distance(x[:, None], y[None])
    shape = jax.ShapeDtypeStruct(x.shape[:1], jnp.int32)
    return jax.pure_callback(_assign, shape, cost, vmap_method="sequential")


def _assign(cost: Any) -> Int[np.ndarray, "n"]:
    import scipy.optimize  # here, because it takes long to import

    cost = np.asarray(cost, float)
    if not np.isfinite(cost).all():
        raise ValueError("x and y must be finite; a distance between them is not.")
    return scipy.optimize.linear_sum_assignment(cost)[1].astype(np.int32)
