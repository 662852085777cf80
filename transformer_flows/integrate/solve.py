"""`solve`: a flow, a start and times give a solution."""

from collections.abc import Callable, Mapping
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, PyTree

from .._checks import concrete, refuse_non_finite, refuse_other_type
from .._types import Knots, Times, TimesLike, as_float
from ..dynamics import AbstractFlow, AbstractNoisyFlow
from ..observables import AbstractIntegral
from ..paths import AbstractPath, find_paths, find_processes
from ._adaptive import adaptive_steps
from ._clock import Clock, clock_of_length, clock_on_grid
from ._fixed import fixed_steps
from ._noise import default_solver, refuse_other_sense, refuse_steps_within_knots
from ._observe import Observers, check_observe
from ._retraction import Retracting, retracting
from ._start import check_start, refuse_outside_noise
from .solution import Solution


def solve(
    flow: AbstractFlow,
    x0: PyTree[Array],
    ts: TimesLike,
    *,
    solver: diffrax.AbstractSolver | None = None,
    dt: ArrayLike | None = None,
    rtol: ArrayLike | None = None,
    atol: ArrayLike | None = None,
    observe: Mapping[str, Callable] | None = None,
    states: bool = True,
    max_steps: int = 1_000_000,
    adjoint: diffrax.AbstractAdjoint | None = None,
    progress_meter: diffrax.AbstractProgressMeter = diffrax.NoProgressMeter(),
) -> Solution:
    """Follow `flow` from `x0` at ts[0] and report at the times `ts` (increasing, dimensionless depth).

    Fixed steps are taken when `dt` is given (times ts[0] + k·dt), or when a path of the flow has a grid (on its
    knots); every derivative mode works. Otherwise steps are adaptive, to `rtol` and `atol` (1e-8 and 1e-10 in float64,
    1e-5 and 1e-7 in float32): reverse mode works, forward mode and Hessians with `adjoint=diffrax.DirectAdjoint()`.
    `solver` is any Diffrax solver of ODEs, kept on the manifold; None takes Euler for fixed steps where a path
    has a grid (a layer is a step) and Tsit5 elsewhere. Steps end at the jumps of the paths, adaptive ones at the knots
    of piecewise-linear paths too.

    Flows that move by noise take fixed steps, on its knots or of a longer `dt`: by `EulerHeun` (also `Heun`,
    `Midpoint`, `Ralston`) where they are meant in the sense of Stratonovich, by `Euler` in that of Itô, where `dt` must
    be a multiple of the knots'. Elsewhere it need not: noise follows lines between its knots, and steps across one err
    like those of their length that end there (measured: 0.144 for 0.142 at 1.5 knots, in distance to the finest path).

    `observe` names observables evaluated at `ts` inside the solve; `states=False` stores no states. An early end is
    not an error: see `Solution.status`, `Solution.end_time`. Results have the dtype of `x0`.

    Raises `ValueError` for a start that is not finite or not on the manifold (naming the token), times that do not
    increase, a flow that still holds a process (draw it with `realise`), and options that contradict each other.
    """
    _refuse_wrong_types(flow, solver, max_steps)
    observe = check_observe(observe)
    x0 = jax.tree.map(as_float, jnp.asarray(x0) if isinstance(x0, list) else x0)
    known_ts, ts = concrete(ts), _times(ts)
    refuse_other_sense(flow, solver)
    paths = _paths(flow)
    check_start(flow, x0)
    # inside jit even constants become tracers; the number of steps needs the values as they were given
    fixed = _fixed_clock(ts if known_ts is None else known_ts, dt, paths, rtol=rtol, atol=atol, adjoint=adjoint)
    on_grid = any(path.grid is not None for path in paths)
    if fixed is None:
        _refuse_jumping_integrals(observe, paths)
        _refuse_fixed_methods(solver, x0)
    if isinstance(flow, AbstractNoisyFlow):
        refuse_steps_within_knots(flow, fixed)
        default = default_solver(flow)
    else:
        default = diffrax.Euler() if on_grid and fixed is not None else diffrax.Tsit5()
    dtype = jnp.result_type(*jax.tree.leaves(x0))
    rtol = as_float(rtol if rtol is not None else (1e-8 if dtype == jnp.float64 else 1e-5))
    atol = as_float(atol if atol is not None else (1e-10 if dtype == jnp.float64 else 1e-7))
    solver = default if solver is None else solver
    wrapped = retracting(solver, flow.manifold, rtol.astype(dtype), atol.astype(dtype))
    return _solve(
        flow,
        x0,
        ts,
        fixed,
        wrapped,
        observe,
        rtol,
        atol,
        progress_meter,
        states=states,
        max_steps=max_steps,
        adjoint=diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
        fresh_start=on_grid,
        breaks=None if fixed is not None else _breaks(paths, ts),
    )


@eqx.filter_jit
def _solve(
    flow: AbstractFlow,
    x0: PyTree[Array],
    ts: Times,
    clock: Clock | None,
    solver: Retracting,
    observe: dict[str, Callable],
    rtol: Array,
    atol: Array,
    progress_meter: diffrax.AbstractProgressMeter,
    *,
    states: bool,
    max_steps: int,
    adjoint: diffrax.AbstractAdjoint,
    fresh_start: bool,
    breaks: Knots | None,
) -> Solution:
    flow = flow.prepared() if isinstance(flow, AbstractNoisyFlow) else flow
    x0 = flow.manifold.retract(x0)
    observers = Observers(observe, states, flow, ts[0], x0)
    if clock is not None:
        saved, status, end_time, stats = fixed_steps(
            flow, x0, ts, clock, solver, observers, progress_meter, fresh_start
        )
    else:
        saved, status, end_time, stats = adaptive_steps(
            flow, x0, ts, solver, observers, progress_meter, breaks, rtol, atol, max_steps, adjoint
        )
    trajectory, observed = saved
    return Solution(ts, trajectory, observed, status, end_time, stats)


def _refuse_wrong_types(flow: Any, solver: Any, max_steps: Any) -> None:
    if not (callable(flow) and hasattr(flow, "manifold")):
        raise ValueError(
            f"flow must be an equinox.Module with a manifold, called as flow(t, x); got {type(flow).__name__}."
        )
    refuse_other_type(solver, "solver", diffrax.AbstractSolver | None, "a Diffrax solver such as Heun(), or None")
    if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
        raise ValueError(f"max_steps must be a positive integer; got {max_steps!r}.")


def _refuse_fixed_methods(solver: diffrax.AbstractSolver | None, x0: PyTree[Array]) -> None:
    """What adaptive steps cannot do: methods without an error estimate, and half precision."""
    if solver is not None and not isinstance(solver, diffrax.AbstractAdaptiveSolver):
        raise ValueError(f"{type(solver).__name__} has no error estimate for adaptive steps; pass dt for fixed ones.")
    dtype = jnp.result_type(*jax.tree.leaves(x0))
    if jnp.finfo(dtype).bits < 32:
        raise ValueError(f"adaptive steps need at least float32; x0 is {dtype}. Pass dt for fixed steps.")


def _times(ts: Any) -> Times:
    ts = as_float(ts)
    if ts.ndim != 1 or ts.shape[0] < 2:
        raise ValueError(f"ts must be at least two times in one dimension; got shape {ts.shape}.")
    refuse_non_finite(ts, "ts")
    value = concrete(ts)
    if value is not None and not (np.diff(value) > 0).all():
        k = int(np.flatnonzero(np.diff(value) <= 0)[0])
        raise ValueError(f"ts must increase; got ts[{k}] = {value[k]} and ts[{k + 1}] = {value[k + 1]}.")
    return ts


def _paths(flow: AbstractFlow) -> list[AbstractPath]:
    processes = find_processes(flow)
    if processes:
        raise ValueError(
            f"the flow holds a process not drawn yet, {type(processes[0]).__name__}. Draw it first: "
            "solve(realise(flow, key, ts), x0, ts), or use solve_ensemble with keys."
        )
    return find_paths(flow)


def _fixed_clock(ts: Any, dt: Any, paths: list[AbstractPath], *, rtol, atol, adjoint) -> Clock | None:
    """The clock of fixed steps, or None for adaptive ones."""
    gridded = [path for path in paths if path.grid is not None]
    rough = refuse_outside_noise(paths, ts)
    adaptive = {name: v for name, v in {"rtol": rtol, "atol": atol, "adjoint": adjoint}.items() if v is not None}
    for name in ("rtol", "atol"):
        value = concrete(adaptive.get(name))
        if value is not None and not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be positive and finite; got {value}.")
    if dt is not None:
        value = concrete(dt)
        if value is not None and not (value.ndim == 0 and np.isfinite(value) and value > 0):
            raise ValueError(f"dt must be one positive finite number; got {value}.")
        if adaptive:
            raise ValueError(f"dt asks for fixed steps, {next(iter(adaptive))} for adaptive ones; give one of them.")
        return clock_of_length(ts, dt, _jumps(paths, as_float(ts)))
    if adaptive and rough:
        raise ValueError(
            f"{type(rough[0]).__name__} moves by noise, which adaptive steps cannot resolve; omit "
            f"{next(iter(adaptive))} to step on its knots. Weights may follow the lines between their knots "
            "instead: AttentionFlow(manifold, process.sample(key, ts).smoothed())."
        )
    if adaptive or not gridded:
        return None
    grids = [path.grid for path in gridded if path.grid is not None]
    return clock_on_grid(ts, grids[0] if len(grids) == 1 else jnp.sort(jnp.concatenate(grids)))


def _jumps(paths: list[AbstractPath], ts: Times) -> Knots | None:
    jumps = [path.jumps for path in paths if path.jumps is not None and path.jumps.shape[0]]
    return jnp.sort(jnp.concatenate([jump.astype(ts.dtype) for jump in jumps])) if jumps else None


def _breaks(paths: list[AbstractPath], ts: Times) -> Knots | None:
    """Where paths are not smooth: they jump, or lines between knots meet."""
    breaks = [path.grid if path.jumps is None else path.jumps for path in paths]
    breaks = [times.astype(ts.dtype) for times in breaks if times is not None and times.shape[0]]
    return jnp.sort(jnp.concatenate(breaks)) if breaks else None


def _refuse_jumping_integrals(observe: dict[str, Callable], paths: list[AbstractPath]) -> None:
    integrals = [name for name, obs in observe.items() if isinstance(obs, AbstractIntegral)]
    if integrals and any(path.jumps is not None for path in paths):
        raise ValueError(
            f"observable {integrals[0]!r} adds up the jumps of the weights, which needs fixed steps: pass dt, or omit "
            "rtol and atol to step on the knots."
        )
