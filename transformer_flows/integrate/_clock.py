"""The times of fixed steps, and which saved time falls into which step."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._checks import concrete

# Their times alone would fill the memory.
_MOST_STEPS = 10**8
# Relative to a step: two times closer than this are one time.
_SAME = 1e-6


class Clock(eqx.Module):
    """Fixed steps k from `start` to `end` of `length`, with the saved times in them, all `(steps,)`.

    `slots` `(steps, m)` are the indices of the times saved within the step (an index past the last one: none), and
    `fraction` the part of the step at which each lies. Step lengths are separate from the clock because differences
    of float32 times lose digits: k steps are k steps.

    The first step has length zero and saves the start, so that observables are compiled once, in the loop.
    """

    start: Float[Array, "steps"]
    end: Float[Array, "steps"]
    length: Float[Array, "steps"]
    slots: Int[Array, "steps m"]
    fraction: Float[Array, "steps m"]


def clock_of_length(ts: Any, dt: Any, jumps: Any) -> Clock:
    """Steps at ts[0] + k·dt, the last one shortened if need be, cut at the jumps. Raises if the count is unknown."""
    times, lengths = _regular(ts, dt)
    if jumps is not None:
        return _clock(ts, _cut(times, jumps, lengths[0]), None)
    return _clock(ts, times, lengths)


def knots_of_length(ts: Any, dt: Any) -> Float[Array, "s"]:
    """The times at which fixed steps of `dt` begin and end."""
    return jnp.asarray(_regular(ts, dt)[0], jnp.asarray(ts).dtype)


def _regular(ts: Any, dt: Any) -> tuple[np.ndarray, np.ndarray]:
    """Times ts[0] + k·dt up to ts[-1], and the lengths of the steps between them, in float64 on the host."""
    span, step = concrete(ts), concrete(dt)
    if span is None or step is None:
        raise ValueError(
            "fixed steps need ts and dt whose values are known when tracing, since their number is a shape. Build ts "
            "outside jit (or with numpy), or omit dt for adaptive steps."
        )
    span, step = span.astype(float), float(step)
    if not (np.isfinite(step) and step > 0):
        raise ValueError(f"dt must be one positive finite number; got {step:g}.")
    count = (span[-1] - span[0]) / step
    if count > _MOST_STEPS:
        raise ValueError(f"dt must give at most {_MOST_STEPS:g} steps; got {step:g}, which gives {count:.3g}.")
    whole = abs(count - np.round(count)) < min(_SAME * max(count, 1.0), 0.05)
    steps = int(np.round(count)) if whole else int(np.ceil(count))
    times = np.append(span[0] + step * np.arange(steps), span[-1])
    lengths = np.full(steps, step)
    lengths[-1] = step if whole else times[-1] - times[-2]
    return times, lengths


def clock_on_grid(ts: Any, grid: Any) -> Clock:
    """Steps between the knots of `grid` that lie within ts, and from ts[0] and to ts[-1]."""
    span, knots = concrete(ts), concrete(grid)
    if span is None or knots is None:
        # values unknown: every knot stays, those outside of ts as steps of length zero
        ts = jnp.asarray(ts)
        inside = jnp.clip(grid, ts[0], ts[-1])
        return _clock(ts, jnp.concatenate([ts[:1], inside, ts[-1:]]), None)
    tolerance = _SAME * float(np.diff(knots).min()) if knots.size > 1 else 0.0
    inside = knots[(knots > span[0] + tolerance) & (knots < span[-1] - tolerance)]
    return _clock(ts, np.concatenate([span[:1], inside, span[-1:]]), None)


def _cut(times: np.ndarray, jumps: Any, step: float) -> Any:
    """Step times with the jumps among them; a time within rounding of a jump is moved onto it."""
    where = concrete(jumps)
    if where is None:
        inside = jnp.clip(jumps, times[0], times[-1])
        return jnp.sort(jnp.concatenate([jnp.asarray(times, inside.dtype), inside]))
    where = where[(where > times[0]) & (where < times[-1])].astype(float)
    near = np.abs(times[:, None] - where[None, :]).min(axis=1, initial=np.inf) < _SAME * step
    near[[0, -1]] = False
    return np.sort(np.concatenate([times[~near], where]))


def _clock(ts: Any, times: Any, lengths: Any) -> Clock:
    """Sort the saved times into the steps; with traced times at most one may fall into each step."""
    np_or_jnp = np if concrete(ts) is not None and concrete(times) is not None else jnp
    ts, times = np_or_jnp.asarray(ts), np_or_jnp.asarray(times)
    lengths = np_or_jnp.diff(times) if lengths is None else lengths
    steps = len(times) - 1
    tolerance = _SAME * lengths.max(initial=0.0)
    saved = ts[1:]
    step = np_or_jnp.clip(np_or_jnp.searchsorted(times, saved - tolerance, side="left") - 1, 0, max(steps - 1, 0))
    rank = np_or_jnp.arange(len(saved)) - np_or_jnp.searchsorted(step, step, side="left")
    gap = times[step + 1] - times[step]
    fraction = np_or_jnp.clip((saved - times[step]) / np_or_jnp.where(gap > 0, gap, 1), 0, 1)
    fraction = np_or_jnp.where(fraction > 1 - _SAME, 1.0, fraction)
    if np_or_jnp is np:
        most = int(rank.max(initial=0)) + 1
        slots, fractions = np.full((steps, most), len(ts)), np.ones((steps, most))
        slots[step, rank] = np.arange(1, len(ts))
        fractions[step, rank] = fraction
    else:
        most = 1
        step = eqx.error_if(step, rank > 0, "two saved times fall into one step; build ts outside jit.")
        slots = jnp.full((steps, 1), len(ts)).at[step, 0].set(jnp.arange(1, len(ts)))
        fractions = jnp.ones((steps, 1)).at[step, 0].set(fraction)
    clock = jnp.asarray(ts).dtype
    join = lambda first, rest, dtype: jnp.concatenate([jnp.asarray(first, dtype), jnp.asarray(rest, dtype)])
    return Clock(
        start=join(times[:1], times[:-1], clock),
        end=join(times[:1], times[1:], clock),
        length=join([0.0], lengths, clock),
        slots=join([[0] + [len(ts)] * (most - 1)], slots, int),
        fraction=join(np.ones((1, most)), fractions, clock),
    )
