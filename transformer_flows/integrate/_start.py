"""Checks of the state from which a solve starts, and of its times."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, PyTree

from .._checks import concrete, refuse_non_finite
from .._types import Valid, as_float
from ..dynamics import AbstractFlow, AbstractHeadsFlow, AbstractNoisyFlow, DensityFlow, GaussianFlow, existing_tokens
from ..geometry import AbstractManifold, refuse_off_manifold
from ..paths import AbstractPath


def check_start(flow: AbstractFlow, x0: PyTree[Array]) -> None:
    """Raise `ValueError` naming the first token that is not finite, zero, or off the manifold; or for no state at all.

    Tokens that do not exist (padding) may hold anything finite. Traced values are not checked.
    """
    several = isinstance(flow, AbstractHeadsFlow | AbstractNoisyFlow)
    flow = flow.quiet if isinstance(flow, AbstractNoisyFlow) else flow
    if isinstance(flow, DensityFlow | GaussianFlow):
        flow.check_start(x0)
    elif isinstance(x0, jax.Array):
        _check_tokens(flow, x0, existing_tokens(flow), several)
    else:
        for leaf in jax.tree.leaves(x0):
            refuse_non_finite(leaf, "x0")


def _check_tokens(flow: AbstractFlow, x0: Array, existing: Valid | None, several: bool) -> None:
    """`several`: the flow moves tokens `(n, d)`, and not one point alone."""
    manifold = flow.manifold
    if not isinstance(manifold, AbstractManifold):
        raise ValueError(f"x0 must be a state of {type(flow).__name__}, not an array of shape {x0.shape}.")
    one_point = x0.ndim == 1 and not several
    if not (x0.ndim == 2 or one_point) or x0.shape[-1] != manifold.d or x0.shape[0] == 0:
        one = "" if several else f", or one point, ({manifold.d},)"
        raise ValueError(f"x0 must be tokens of shape (n, {manifold.d}) with n >= 1{one}; got shape {x0.shape}.")
    if existing is not None and existing.shape != x0.shape[:1]:
        raise ValueError(f"the padding mask has shape {existing.shape}, but x0 has {x0.shape[0]} tokens.")
    exists = concrete(existing)
    if exists is not None and not exists.any():
        raise ValueError("the padding mask must leave at least one token; it marks none as existing.")
    if one_point:
        refuse_non_finite(x0, "x0")
        x0 = x0[None]
    value = concrete(x0)
    if value is None:
        return
    bad = np.flatnonzero(~np.isfinite(value).all(axis=-1))
    if bad.size:
        raise ValueError(f"x0 must be finite; token {bad[0]} is {value[bad[0]]}.")
    refuse_off_manifold(value, "x0", manifold, exists)


def refuse_outside_noise(paths: list[AbstractPath], ts: Any) -> list[AbstractPath]:
    """The paths that move by noise, which is known between the knots on which it was drawn, and nowhere else.

    Raises `ValueError` for times outside of them, where both are known.
    """
    # traced, not computed: only whether there is a derivative matters
    smooth = lambda path: eqx.filter_eval_shape(path.derivative, as_float(ts[0])) is not None
    rough = [path for path in paths if path.grid is not None and path.jumps is None and not smooth(path)]
    known = concrete(ts)
    for path in rough:
        grid = concrete(path.grid)
        if known is None or grid is None:
            continue
        rounding = 1e-6 * (grid[-1] - grid[0])
        if known[0] < grid[0] - rounding or known[-1] > grid[-1] + rounding:
            raise ValueError(
                f"ts must lie within the times on which the {type(path).__name__} was drawn, [{grid[0]:g}, "
                f"{grid[-1]:g}]; got [{known[0]:g}, {known[-1]:g}]. Draw it on times that reach as far."
            )
    return rough
