"""Sliced Wasserstein distances: exact W_2 of projections on random lines or great circles, averaged."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from .._checks import refuse_other_count, refuse_other_type
from .._types import Key, Scalar
from ..geometry import AbstractManifold, Euclidean, Sphere
from ..geometry._norm import unit
from ._clouds import Cloud, CloudLike, as_clouds_of_one_size, refuse_traced_non_finite, root

Sorted = Float[Array, "n"]


class SlicedDistance(eqx.Module):
    """`value` and the standard error of it over directions: 0 where one direction says all, infinite for a lone one."""

    value: Scalar
    error: Scalar


def sliced_wasserstein(
    x: CloudLike, y: CloudLike, manifold: AbstractManifold, key: Key, *, directions: int = 128
) -> SlicedDistance:
    """SW_2 = (E_θ W_2²(θ#x, θ#y))^{1/2} of the clouds `x` and `y`, both `(n, d)`, over random directions θ.

    On `Euclidean(d)` θ# projects on a uniform line through 0. On `Sphere(d)` it projects on a uniform great circle
    (a plane of R^d, then the unit circle in it) with arc length as distance; a token that projects to 0 goes to angle
    0. No factor d makes up for the shorter projections. On `Euclidean(1)` and `Sphere(2)` the one direction is exact.

    Work O(directions · n log n), memory O(directions · n). Differentiable with the matchings held fixed, as
    `wasserstein` is: 0 at value 0, and 0 for a token that projects to 0. `error` is constant to derivatives.

    Raises `ValueError` for clouds of other sizes or dimensions, empty ones, tokens that are not finite, fewer than
    one direction, and another manifold. Source: Bonet et al., ICLR 2023 (spherical; there angles are over 2π).
    """
    refuse_other_type(manifold, "manifold", Sphere | Euclidean, "a Sphere or Euclidean, which have slices")
    x, y = as_clouds_of_one_size(x, y, manifold)
    refuse_other_count(directions, "directions", 1)
    x, y = refuse_traced_non_finite(x, "x"), refuse_traced_non_finite(y, "y")
    slices = _great_circles if isinstance(manifold, Sphere) else _lines
    return slices(x, y, key, directions)


@functools.partial(jax.jit, static_argnums=3)
def _lines(x: Cloud, y: Cloud, key: Key, directions: int) -> SlicedDistance:
    d = x.shape[1]
    axes = unit(jr.normal(key, (directions, d))) if d > 1 else jnp.ones((1, 1))
    project = functools.partial(jnp.matmul, precision="highest")
    squares = jax.vmap(lambda axis: _squared_on_line(project(x, axis), project(y, axis)))(axes.astype(x.dtype))
    return _root_mean(squares, exact=d == 1)


@functools.partial(jax.jit, static_argnums=3)
def _great_circles(x: Cloud, y: Cloud, key: Key, directions: int) -> SlicedDistance:
    d = x.shape[1]
    planes = _planes(key, directions, d) if d > 2 else jnp.eye(2)[None]

    def square(plane: Float[Array, "2 d"]) -> Scalar:
        return squared_on_circle(_angles(x, plane), _angles(y, plane))

    return _root_mean(jax.vmap(square)(planes.astype(x.dtype)), exact=d == 2)


def _planes(key: Key, k: int, d: int) -> Float[Array, "k 2 d"]:
    """Orthonormal bases of `k` uniform planes of R^d."""
    first, second = jnp.moveaxis(jr.normal(key, (k, 2, d)), 1, 0)
    first = unit(first)
    for _ in range(2):  # once more: the first time leaves rounding where the two are nearly parallel
        second = unit(second - jnp.sum(first * second, axis=-1, keepdims=True) * first)
    return jnp.stack([first, second], axis=1)


def _angles(x: Cloud, plane: Float[Array, "2 d"]) -> Float[Array, "n"]:
    """Angles in [-π, π] of the projections; 0 with zero derivatives where the projection is 0."""
    direction = unit(jnp.matmul(x, plane.T, precision="highest"))
    zero = (direction == 0).all(axis=1)
    return jnp.atan2(direction[:, 1], jnp.where(zero, 1, direction[:, 0]))


def _squared_on_line(x: Float[Array, "n"], y: Float[Array, "n"]) -> Scalar:
    return jnp.mean((jnp.sort(x) - jnp.sort(y)) ** 2)


def squared_on_circle(x: Float[Array, "n"], y: Float[Array, "n"]) -> Scalar:
    """W_2² of two clouds of angles in [-π, π], for arc length.

    An optimal matching keeps the cyclic order (Delon, Salomon & Sobolevski, SIAM J. Appl. Math. 2010): the sorted `x`
    go to the sorted `y`, continued by turns of 2π, from some place k on. The cost is convex in k.
    """
    x, y = jnp.sort(x), jnp.sort(y)
    return jnp.mean((x - _continued(y, _best_shift(*jax.lax.stop_gradient((x, y))))) ** 2)


def _best_shift(x: Sorted, y: Sorted) -> Int[Array, ""]:
    """The least k in [-n, n] from which the cost does not fall: at -n all of `y` lies a turn below `x`, at n above."""
    n = x.size

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        k = (low + high) // 2
        here, there = _continued(y, k), _continued(y, k + 1)
        # n (cost(k + 1) - cost(k)), as a sum of products: a difference of two sums would lose its sign to rounding
        rises = jnp.sum((there - here) * (here - x + (there - x))) >= 0
        return jnp.where(rises, low, k + 1), jnp.where(rises, k, high)

    start = jnp.array(-n), jnp.array(n)
    return jax.lax.fori_loop(0, int(np.ceil(np.log2(2 * n + 1))), halve, start)[0]


def _continued(y: Sorted, k: Int[Array, ""]) -> Sorted:
    """y_k, …, y_{k+n-1} of the sequence with y_{j+n} = y_j + 2π."""
    place = jnp.arange(y.size) + k
    return y[place % y.size] + 2 * jnp.pi * (place // y.size).astype(y.dtype)


def _root_mean(squares: Float[Array, "k"], exact: bool) -> SlicedDistance:
    """The root of the mean, and its standard error by the delta method."""
    value = root(jnp.mean(squares))
    if exact or squares.size == 1:
        return SlicedDistance(value, jnp.asarray(0 if exact else jnp.inf, value.dtype))
    held, squares = jax.lax.stop_gradient((value, squares))
    spread = jnp.std(squares, ddof=1) / squares.size**0.5
    return SlicedDistance(value, jnp.where(held > 0, spread / (2 * jnp.where(held > 0, held, 1)), 0))
