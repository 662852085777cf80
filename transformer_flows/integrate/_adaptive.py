"""Adaptive steps: Diffrax's own loop, on a clock that runs from 0 to 1."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .._types import Knots, Scalar, Times
from ..dynamics import AbstractFlow
from ._blow_up import at_blow_up, ends_within
from ._observe import Observers, cast_like
from ._retraction import Augmented, Retracting
from ._step_size import Resolved, error_of_state
from .solution import Status


def adaptive_steps(
    flow: AbstractFlow,
    x0: PyTree[Array],
    ts: Times,
    solver: Retracting,
    observers: Observers,
    progress_meter: diffrax.AbstractProgressMeter,
    breaks: Knots | None,
    rtol: Scalar,
    atol: Scalar,
    max_steps: int,
    adjoint: diffrax.AbstractAdjoint,
) -> tuple[Any, Status, Scalar, dict[str, Array]]:
    """Solve with error control; returns what was saved at `ts`, the status, the time reached and the step counts.

    The unit clock makes a horizon of 1e-10 the same problem as one of 1.
    """
    dtype = jnp.result_type(*jax.tree.leaves(x0))
    span = ts[-1] - ts[0]
    unit = ((ts - ts[0]) / span).astype(dtype)
    breaks = jax.lax.stop_gradient(breaks)  # where steps end is no matter of derivatives
    unit_breaks = None if breaks is None else ((breaks - ts[0]) / span).astype(dtype)

    def field(s: Any, y: Any, args: Any) -> Augmented:
        x, integrals = y
        t = _time(s, ts, breaks, unit_breaks)
        scale = lambda leaf: leaf * span.astype(leaf.dtype)
        return cast_like(jax.tree.map(scale, (flow(t, x), observers.rates(t, x, flow))), (x, integrals))

    def save(s: Scalar, y: Augmented, args: Any):
        x, integrals = y
        t = ts[0] + s.astype(ts.dtype) * span
        return observers.save(t, solver.retract(x), integrals, flow)

    # the rest is extrapolated; further on, the clock would resolve the time that is left worse and worse
    short = span * float(jnp.finfo(dtype).eps) ** 0.5

    def near_blow_up(s: Scalar, y: Augmented, args: Any, **_: Any):
        return ends_within(flow, _time(s, ts, breaks, unit_breaks), y[0], short)

    pid = diffrax.PIDController(rtol.astype(dtype), atol.astype(dtype), norm=error_of_state)
    controller: diffrax.AbstractStepSizeController = Resolved(pid)  # pyright: ignore[reportCallIssue]  # rtol, atol: properties
    if unit_breaks is not None:
        controller = diffrax.ClipStepSizeController(controller, jump_ts=unit_breaks)
    result = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        solver,
        t0=jnp.zeros((), dtype),
        t1=jnp.ones((), dtype),
        dt0=None,
        y0=(x0, observers.zeros(ts[0], x0, flow)),
        saveat=diffrax.SaveAt(
            subs=[
                diffrax.SubSaveAt(t0=True, ts=unit[1:], fn=save),
                diffrax.SubSaveAt(t1=True, fn=lambda s, y, args: (s, y[0])),
            ]
        ),
        stepsize_controller=controller,
        max_steps=max_steps,
        adjoint=adjoint,
        event=diffrax.Event(near_blow_up) if flow.explosive else None,
        throw=False,
        progress_meter=progress_meter,
    )
    assert result.ys is not None
    saved, last = result.ys
    reached, x1 = jax.tree.map(lambda leaf: leaf[0], last)
    status = _status(result.result)
    done = status == "successful"
    end_time = jnp.where(done, ts[-1], ts[0] + reached.astype(ts.dtype) * span)
    if flow.explosive:
        status, end_time = at_blow_up(flow, status, end_time, x1, 2 * short)
    valid = done | (unit <= reached)
    saved = jax.tree.map(lambda leaf: jnp.where(_along(valid, leaf), leaf, jnp.nan), saved)
    stats = {name: jnp.asarray(result.stats[name]) for name in ("num_steps", "num_rejected_steps")}
    return saved, status, end_time, stats


def _time(s: Scalar, ts: Times, breaks: Knots | None, unit_breaks: Knots | None) -> Scalar:
    """The time of unit clock `s`, kept on the side of the breaks on which `s` is, whatever the rounding."""
    t = ts[0] + s.astype(ts.dtype) * (ts[-1] - ts[0])
    if breaks is None or unit_breaks is None:
        return t
    breaks = breaks.astype(ts.dtype)
    piece = jnp.searchsorted(unit_breaks, s, side="right")
    low = jnp.concatenate([jnp.full(1, -jnp.inf, breaks.dtype), breaks])[piece]
    high = jnp.concatenate([breaks, jnp.full(1, jnp.inf, breaks.dtype)])[piece]
    return jnp.clip(t, low, jnp.nextafter(high, low))


def _status(result: diffrax.RESULTS) -> Status:
    is_ = lambda outcome: result == outcome
    code = jnp.where(is_(diffrax.RESULTS.successful), 0, Status.of("solver_failed").code)
    code = jnp.where(is_(diffrax.RESULTS.event_occurred), Status.of("blow_up").code, code)
    code = jnp.where(is_(diffrax.RESULTS.max_steps_reached), Status.of("max_steps").code, code)
    code = jnp.where(is_(diffrax.RESULTS.dt_min_reached), Status.of("step_underflow").code, code)
    return Status(code)


def _along(valid: Array, leaf: Array) -> Array:
    return valid.reshape(-1, *[1] * (leaf.ndim - 1))
