"""What every process shares: its clock, its times, and noise that keeps the symmetries of heads."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .._checks import concrete, refuse_non_finite
from .._types import Scalar, Times, as_float
from ..models import AbstractHeads
from ._knots import knots

DEPTH = 20
_MOST = 30  # nodes of a deeper tree do not fit into 32 bits


def clock(unit: Any, depth: Any) -> tuple[float, int]:
    """A checked clock. Both are static: they say which path a key means, and so belong to the program."""
    number = float(unit)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"unit must be a positive finite time; got {unit!r}.")
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= _MOST:
        raise ValueError(f"depth must be an integer from 0 to {_MOST}; got {depth!r}.")
    return number, depth


def regular_step(ts: Times) -> float:
    """The step of equidistant times k·step, as the unit of a clock. Raises `ValueError` for other times."""
    value = concrete(ts)
    advice = "give the noise a unit, such as Brownian(like, unit=0.1)"
    if value is None:
        raise ValueError(f"noise without a unit needs times whose values are known when tracing; {advice}.")
    if value.size == 1:
        return 1.0 if value[0] == 0 else float(value[0])
    step = (float(value[-1]) - float(value[0])) / (value.size - 1)
    places = value.astype(np.float64) / step
    if np.abs(places - np.round(places)).max() > 1e-3:
        raise ValueError(f"noise without a unit needs times that are multiples of one step; {advice}.")
    return step


def noise_times(ts: Any) -> Times:
    """`ts` as knots of noise, which begins at time 0."""
    ts = knots(ts, "ts")
    value = concrete(ts)
    if value is not None and value[0] < 0:
        raise ValueError(f"ts must not be negative: noise begins at time 0; got {value[0]} at index 0.")
    return ts


def parameter(x: Any, name: str) -> Scalar:
    """`x` as a floating scalar that is finite and not negative."""
    x = as_float(x)
    if x.ndim:
        raise ValueError(f"{name} must be one number; got shape {x.shape}.")
    refuse_non_finite(x, name)
    value = concrete(x)
    if value is not None and value < 0:
        raise ValueError(f"{name} must not be negative; got {value}.")
    return x


def symmetrised(tree: PyTree) -> PyTree:
    """`tree` with every heads in it projected on the heads of its type: tied heads stay symmetric."""

    def is_heads(node: Any) -> bool:
        return isinstance(node, AbstractHeads)

    return jax.tree.map(lambda node: node.symmetrised() if is_heads(node) else node, tree, is_leaf=is_heads)


def refuse_asymmetric(tree: PyTree, name: str) -> None:
    """Raise `ValueError` where heads in `tree` do not have the symmetry of their type, to 1e-5 of the largest entry."""
    gap = concrete(_asymmetry(tree))
    if gap is not None and gap > 1e-5:
        raise ValueError(f"{name} must be symmetric, like the tied heads that move towards it.")


@eqx.filter_jit
def _asymmetry(tree: PyTree) -> Scalar:
    """Largest change by `symmetrised`, relative to the largest entry of each array."""
    own, wanted = (jax.tree.leaves(eqx.filter(t, eqx.is_inexact_array)) for t in (tree, symmetrised(tree)))
    gaps = [jnp.abs(a - b).max() / jnp.maximum(jnp.abs(a).max(), 1e-30) for a, b in zip(own, wanted, strict=True)]
    return jnp.max(jnp.stack(gaps)) if gaps else jnp.zeros(())
