"""Fixed steps: a scan over the solver's own step.

Exact step counts, every derivative mode, and reverse mode with memory of the square root of the number of steps: the
steps are scanned in blocks of about √steps, and a block is recomputed when it is differentiated.
"""

import math
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PyTree

from .._types import Scalar, Times
from ..dynamics import AbstractFlow, AbstractNoisyFlow
from ._blow_up import at_blow_up, ends_within
from ._clock import Clock
from ._noise import noise_term
from ._observe import Observers, cast_like
from ._retraction import Augmented, Retracting
from .solution import Status


class _Carry(eqx.Module):
    y: Augmented
    solver_state: Any
    status: Int[Array, ""]
    end_time: Scalar
    taken: Int[Array, ""]


def fixed_steps(
    flow: AbstractFlow,
    x0: PyTree[Array],
    ts: Times,
    clock: Clock,
    solver: Retracting,
    observers: Observers,
    progress_meter: diffrax.AbstractProgressMeter,
    fresh_start: bool,
) -> tuple[Any, Status, Scalar, dict[str, Array]]:
    """Solve over the clock; returns what was saved at `ts`, the status, the time reached and the step count.

    `fresh_start`: the field may be discontinuous between steps, so no stage is carried over from the last one.
    """
    zeros = observers.zeros(ts[0], x0, flow)
    like = eqx.filter_eval_shape(observers.save, ts[0], x0, zeros, flow)
    saved = _blank(like, len(ts))
    y0 = (x0, zeros)
    args = (flow, observers, ts[0], ts[0])
    length = clock.length[0].astype(jnp.result_type(*jax.tree.leaves(x0)))
    solver_state = solver.init(_terms(flow, ts[0], ts[0]), jnp.zeros_like(length), length, y0, args)

    def step(carry: _Carry, now: Clock) -> tuple[_Carry, Any]:
        def advance(carry: _Carry):
            return _advance(carry, now, flow, solver, observers, len(ts), like, fresh_start)

        def rest(carry: _Carry):
            return carry, _blank(like, now.slots.size)

        empty = (now.length == 0) & (now.slots == len(ts)).all()
        return jax.lax.cond((carry.status == 0) & ~empty, advance, rest, carry)

    @jax.checkpoint
    def block(carry: _Carry, now: Clock) -> tuple[_Carry, Any]:
        return jax.lax.scan(step, carry, now)

    def outer(state: tuple[_Carry, Any, Any], now: Clock):
        carry, saved, meter = state
        carry, new = block(carry, now)
        slots = now.slots.reshape(-1)
        new = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), new)
        saved = jax.tree.map(lambda buffer, leaf: buffer.at[slots].set(leaf, mode="drop"), saved, new)
        meter = progress_meter.step(meter, (now.end[-1] - ts[0]) / (ts[-1] - ts[0]))
        return (carry, saved, meter), None

    none = jnp.zeros((), int)
    start = _Carry(y0, solver_state, none, ts[0], none)
    end: _Carry
    (end, saved, meter), _ = jax.lax.scan(outer, (start, saved, progress_meter.init()), _blocks(clock, len(ts)))
    progress_meter.close(meter)
    status, end_time = Status(end.status), end.end_time
    if flow.explosive:
        status, end_time = at_blow_up(flow, status, end_time, end.y[0], 2 * clock.length.max())
    return saved, status, end_time, {"num_steps": end.taken}


def _terms(flow: AbstractFlow, t0: Scalar, t1: Scalar) -> diffrax.AbstractTerm:
    """What moves the state in a step: the flow, and its noise where it has one."""
    drift = diffrax.ODETerm(_local_field)
    return diffrax.MultiTerm(drift, noise_term(flow, t0, t1)) if isinstance(flow, AbstractNoisyFlow) else drift


def _local_field(tau: Any, y: Any, args: Any) -> Augmented:
    """The flow and the rates at t0 + tau: the step runs on its own clock, which starts at 0.

    The time is kept short of the end of the step, where a path may jump to its next value.
    """
    flow, observers, t0, t1 = args
    x, integrals = y
    t = _within(tau, t0, t1)
    return cast_like((flow(t, x), observers.rates(t, x, flow)), (x, integrals))


def _within(tau: Scalar, t0: Scalar, t1: Scalar) -> Scalar:
    last = jnp.nextafter(*jax.lax.stop_gradient((t1, t0)))  # it has no derivative, and knots may be differentiated
    return jnp.minimum(t0 + tau.astype(t0.dtype), last)


def _advance(
    carry: _Carry,
    now: Clock,
    flow: AbstractFlow,
    solver: Retracting,
    observers: Observers,
    none: int,
    like: Any,
    fresh_start: bool,
) -> tuple[_Carry, Any]:
    """One step, and what is saved within it `(m, ...)`; a step that fails leaves the state as it was."""
    x0, before = carry.y
    # the step's own clock is in the precision of the state, which a finer clock would promote
    length = now.length.astype(jnp.result_type(*jax.tree.leaves(x0)))
    zero = jnp.zeros_like(length)
    args = (flow, observers, now.start, now.end)
    terms = _terms(flow, now.start, now.end)
    y1, _, dense_info, solver_state, result = solver.step(
        terms, zero, length, carry.y, args, carry.solver_state, fresh_start
    )
    x1, after = y1
    # the start as the first stage sees it: the same expression, so that its sums are compiled once
    after = observers.add_jumps(after, _within(zero, now.start, now.end), now.end, x0, x1, flow)
    finite = _all_finite(x1)
    solved = result == diffrax.RESULTS.successful
    good = finite & solved

    def save(fraction: Scalar):
        interpolation = solver.interpolation_cls(t0=zero, t1=length, **dense_info)
        # a step's own end needs no interpolation, and has the jumps of the integrals
        at_end = fraction >= 1
        inside, running = interpolation.evaluate(fraction.astype(length.dtype) * length)
        inside = solver.retract(inside)
        x = jax.tree.map(lambda a, b: jnp.where(at_end, a, b), x1, inside)
        integrals = jax.tree.map(lambda a, b: jnp.where(at_end, a, b), after, running)
        t = jnp.where(at_end, now.end, now.start + fraction * (now.end - now.start))
        return observers.save(t, x, integrals, flow)

    def save_if_asked(slot: Int[Array, ""], fraction: Scalar):
        return jax.lax.cond((slot < none) & good, save, lambda _: _blank(like), fraction)

    slots = [save_if_asked(now.slots[i], now.fraction[i]) for i in range(now.slots.shape[0])]
    saved = jax.tree.map(lambda *leaves: jnp.stack(leaves), *slots)
    keep = lambda new, old: jax.tree.map(lambda a, b: jnp.where(good, a, b), new, old)
    failed = jnp.where(finite, Status.of("solver_failed").code, Status.of("non_finite").code)
    status = jnp.where(good, carry.status, failed)
    if flow.explosive:  # the next step would run through the singularity
        held = jax.lax.stop_gradient(x1)
        blown = good & (now.length > 0) & ends_within(flow, now.end, held, now.length)
        status = jnp.where(blown, Status.of("blow_up").code, status)
    return (
        _Carry(
            y=keep((x1, after), (x0, before)),
            solver_state=keep(solver_state, carry.solver_state),
            status=status,
            end_time=jnp.where(good, now.end, carry.end_time),
            taken=carry.taken + (good & (now.length > 0)),
        ),
        saved,
    )


def _blocks(clock: Clock, none: int) -> Clock:
    """The clock as (blocks, steps per block), filled up with steps of length zero at which nothing is saved."""
    steps = clock.length.shape[0]
    inner = max(1, math.isqrt(steps))
    blocks = -(-steps // inner)
    fill = blocks * inner - steps
    padded = Clock(
        start=jnp.concatenate([clock.start, jnp.repeat(clock.end[-1:], fill)]),
        end=jnp.concatenate([clock.end, jnp.repeat(clock.end[-1:], fill)]),
        length=jnp.concatenate([clock.length, jnp.zeros(fill, clock.length.dtype)]),
        slots=jnp.concatenate([clock.slots, jnp.full((fill, clock.slots.shape[1]), none)]),
        fraction=jnp.concatenate([clock.fraction, jnp.ones((fill, clock.slots.shape[1]), clock.fraction.dtype)]),
    )
    return jax.tree.map(lambda leaf: leaf.reshape(blocks, inner, *leaf.shape[1:]), padded)


def _blank(like: Any, *axes: int) -> Any:
    """NaN in the shapes of `like`, with leading axes: the value of every time that is not reached."""
    return jax.tree.map(lambda leaf: jnp.full((*axes, *leaf.shape), jnp.nan, leaf.dtype), like)


def _all_finite(x: PyTree[Array]) -> Bool[Array, ""]:
    return jax.tree.reduce(lambda flag, leaf: flag & jnp.isfinite(leaf).all(), x, jnp.asarray(True))
