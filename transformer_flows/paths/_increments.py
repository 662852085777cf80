"""Increments of paths that do not move by noise."""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree, ScalarLike

from ._knots import map_floats
from ._path import AbstractPath, Increment


def zeros_like(tree: PyTree) -> PyTree:
    """`tree` with every floating array replaced by zeros."""
    return map_floats(jnp.zeros_like, tree)


def difference(after: PyTree, before: PyTree) -> PyTree:
    """`after` - `before` on the floating arrays."""
    return map_floats(lambda a, b: a - b, after, before)


def float_dtype(tree: PyTree) -> jnp.dtype:
    """The floating dtype of the arrays in `tree` together."""
    leaves = [leaf.dtype for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]
    return jnp.result_type(*(dtype for dtype in leaves if jnp.issubdtype(dtype, jnp.floating)))


def without_noise(path: AbstractPath, t0: ScalarLike, t1: ScalarLike) -> Increment:
    """All of path(t1) - path(t0), jumps too, as drift."""
    drift = difference(path(t1), path(t0))
    return Increment(drift, zeros_like(drift), jnp.zeros((), float_dtype(drift)))
