"""Values at knots as functions of time: which interval a time is in, and the line between its ends."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree, ScalarLike

from .._checks import concrete, refuse_non_finite
from .._types import Knots, as_float


def knots(grid: Any, name: str, least: int = 1) -> Knots:
    """`grid` as a floating array; `ValueError` unless it is one-dimensional, finite and strictly increasing."""
    grid = as_float(grid)
    if grid.ndim != 1 or grid.shape[0] < least:
        raise ValueError(f"{name} must be a vector of at least {least} times; got shape {grid.shape}.")
    refuse_non_finite(grid, name)
    value = concrete(grid)
    if value is not None and not (np.diff(value) > 0).all():
        k = int(np.flatnonzero(np.diff(value) <= 0)[0])
        raise ValueError(f"{name} must increase strictly; got {value[k]} before {value[k + 1]} at index {k}.")
    return grid


def float_leaves(tree: PyTree) -> PyTree:
    """`tree` with every number in it as a floating array; booleans and whatever is not a number are kept."""

    def convert(leaf: Any) -> Any:
        number = eqx.is_array_like(leaf) and jnp.issubdtype(jnp.result_type(leaf), jnp.number)
        return as_float(leaf) if number else leaf

    return jax.tree.map(convert, tree)


def leading(values: PyTree, length: int, what: str) -> PyTree:
    """`values` as floating arrays; `ValueError` unless every one has a leading axis of `length`, and there is one."""
    values = float_leaves(values)
    arrays = jax.tree.leaves(eqx.filter(values, eqx.is_inexact_array))
    wrong = [leaf.shape for leaf in arrays if leaf.ndim == 0 or leaf.shape[0] != length]
    if wrong or not arrays:
        got = f"shape {wrong[0]}" if wrong else "no array"
        raise ValueError(f"values must have a leading axis of {length}, {what}; got {got}.")
    refuse_non_finite_leaves(values, "values")
    return values


def refuse_non_finite_leaves(tree: PyTree, name: str) -> None:
    """`refuse_non_finite` for every floating array in `tree`."""
    for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)):
        refuse_non_finite(leaf, name)


def map_floats(function: Any, *trees: PyTree) -> PyTree:
    """`function` on the floating arrays of the trees; every other leaf is the first tree's."""
    own, rest = eqx.partition(trees[0], eqx.is_inexact_array)
    others = (eqx.filter(tree, eqx.is_inexact_array) for tree in trees[1:])
    return eqx.combine(jax.tree.map(function, own, *others), rest)


def interval(grid: Knots, t: ScalarLike) -> Int[Array, ""]:
    """k with grid[k] <= t < grid[k+1]; the first interval before the grid, the last one from its last knot on."""
    k = jnp.searchsorted(grid, t, side="right", method="scan_unrolled") - 1
    return jnp.clip(k, 0, max(grid.shape[0] - 2, 0))


def line(grid: Knots, values: PyTree, t: ScalarLike) -> PyTree:
    """Values on the line between the knots around `t`, exact at the knots, constant outside of them."""
    if grid.shape[0] == 1:
        return map_floats(lambda v: v[0], values)
    k = interval(grid, t)
    weight = jnp.clip((t - grid[k]) / (grid[k + 1] - grid[k]), 0, 1)

    def between(v: Array) -> Array:
        w = weight.astype(v.dtype)
        return (1 - w) * v[k] + w * v[k + 1]

    return map_floats(between, values)


def slope(grid: Knots, values: PyTree, t: ScalarLike) -> PyTree:
    """Slope of that line: from the right at a knot, from the left at the last one, 0 outside of the knots."""
    if grid.shape[0] == 1:
        return map_floats(lambda v: jnp.zeros_like(v[0]), values)
    k = interval(grid, t)
    inside = (t >= grid[0]) & (t <= grid[-1])
    length = grid[k + 1] - grid[k]
    return map_floats(lambda v: jnp.where(inside, (v[k + 1] - v[k]) / length.astype(v.dtype), 0), values)
