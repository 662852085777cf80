"""`solve_ensemble`: many members of one flow, one after the other inside one compiled call."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, PyTree, Shaped

from .._checks import concrete, refuse_other_keys
from .._types import TimesLike, as_float
from ..dynamics import AbstractFlow
from ..paths import AbstractPath, find_processes, realise
from ._clock import knots_of_length
from ._start import check_start
from .solution import Solution
from .solve import solve


def solve_ensemble(
    flow: AbstractFlow,
    x0: PyTree[Array],
    ts: TimesLike,
    keys: Shaped[Array, "..."] | None = None,
    *,
    in_axes: tuple[int | None, int | None] = (None, None),
    dt: ArrayLike | None = None,
    **options: Any,
) -> Solution:
    """Solve every member; the solution has a leading member axis on everything but `ts`.

    Members differ by `keys` (each draws the processes of the flow, on ts or on the steps of `dt`), by start, or by
    weights: `in_axes=(flow, x0)` holds 0 where the argument's arrays have a leading member axis, None where it is
    shared. Members run in turn, each as large as the machine allows, so that memory is that of one solve; member i
    depends on its own key and start only. Over several devices, split the keys by `jax.shard_map` around this call,
    with `check_vma=False`. Other options are those of `solve`.

    Raises `ValueError` for keys that are not one per member, if nothing tells the members apart, if member axes differ,
    or as `solve` does.
    """
    known_ts = concrete(ts)
    ts = as_float(ts) if known_ts is None else known_ts
    x0 = jax.tree.map(as_float, x0)
    if not (isinstance(in_axes, tuple) and len(in_axes) == 2 and all(axis in (0, None) for axis in in_axes)):
        raise ValueError(f"in_axes must be two of 0 and None, for flow and x0; got {in_axes!r}.")
    if keys is not None:
        refuse_other_keys(keys, "keys", many=True)
    flow_axis, x0_axis = in_axes
    own = eqx.filter(flow, eqx.is_array) if flow_axis == 0 else None
    e = _members((keys, own, x0 if x0_axis == 0 else None))
    if keys is None and find_processes(flow):
        raise ValueError("the flow holds a process: pass keys, one per member, to draw it.")
    for i in range(e if x0_axis == 0 else 1):
        try:
            check_start(flow, jax.tree.map(lambda leaf, i=i: leaf[i], x0) if x0_axis == 0 else x0)
        except ValueError as error:
            raise ValueError(f"member {i}: {error}") if x0_axis == 0 else error from None
    if flow_axis is None:
        flow = _with_known_knots(flow)
    solution = _in_turn(flow, x0, keys, _known(ts), _known(dt), options, in_axes=in_axes)
    return eqx.tree_at(lambda s: s.ts, solution, as_float(ts))


@eqx.filter_jit
def _in_turn(
    flow: AbstractFlow, x0: PyTree[Array], keys: Any, ts: Any, dt: Any, options: dict, *, in_axes: tuple
) -> Solution:
    """The members' solutions, compiled once: a second call with other keys runs the same program."""
    flow, ts, dt = _as_arrays((flow, ts, dt))
    arrays, static = eqx.partition(flow, eqx.is_array)
    with jax.ensure_compile_time_eval():  # the steps of the noise are known while tracing where ts is
        knots = as_float(ts) if dt is None else knots_of_length(ts, dt)

    def member(batch: tuple) -> Solution:
        key, own_arrays, own_x0 = batch
        own = eqx.combine(arrays if own_arrays is None else own_arrays, static)
        drawn = own if key is None else realise(own, key, knots)
        return solve(drawn, x0 if own_x0 is None else own_x0, ts, dt=dt, **options)

    own_arrays, own_x0 = (tree if axis == 0 else None for tree, axis in zip((arrays, x0), in_axes, strict=True))
    return jax.lax.map(member, (keys, own_arrays, own_x0))


@dataclass(frozen=True)
class _Known:
    """An array as part of the program: its values are known while tracing, and decide the number of steps."""

    shape: tuple[int, ...]
    dtype: str
    values: bytes

    def array(self) -> Array:
        return jnp.asarray(np.frombuffer(self.values, self.dtype).reshape(self.shape))


def _known(times: Any) -> Any:
    value = concrete(times)
    return times if value is None else _Known(value.shape, str(value.dtype), value.tobytes())


def _with_known_knots(flow: AbstractFlow) -> AbstractFlow:
    """`flow` with every vector in its paths known, since it may hold knots."""
    is_path = lambda node: isinstance(node, AbstractPath)
    is_vector = lambda leaf: eqx.is_array(leaf) and leaf.ndim == 1
    known = lambda node: jax.tree.map(lambda leaf: _known(leaf) if is_vector(leaf) else leaf, node)
    return jax.tree.map(lambda node: known(node) if is_path(node) else node, flow, is_leaf=is_path)


def _as_arrays(tree: Any) -> Any:
    is_known = lambda leaf: isinstance(leaf, _Known)
    with jax.ensure_compile_time_eval():
        return jax.tree.map(lambda leaf: leaf.array() if is_known(leaf) else leaf, tree)


def _members(batch: PyTree[Array]) -> int:
    sizes = {leaf.shape[0] if leaf.ndim else 0 for leaf in jax.tree.leaves(batch)}
    if not sizes:
        raise ValueError("nothing tells the members apart: pass keys, or in_axes with a 0 for the flow or x0.")
    if len(sizes) > 1 or 0 in sizes:
        raise ValueError(f"keys, flow and x0 must have one number of members >= 1; got {sorted(sizes)}.")
    return sizes.pop()
