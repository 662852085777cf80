"""Weights that stability and long time are studied with: heads drawn from a key, and how they move."""

from collections.abc import Iterable, Iterator

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from .._types import Key
from ..models import Heads, TiedHeads, random_symmetric
from ..paths import AbstractPath, Constant, Interpolated, OrnsteinUhlenbeck, Oscillating, phase_locked, phase_spread
from .spec import Rule, got

KINDS = ("fixed", "oscillating_locked", "oscillating_spread", "ou_smoothed")
LABELS = {
    "fixed": "fixed",
    "oscillating_locked": "oscillating, phases locked",
    "oscillating_spread": "oscillating, phases spread",
    "ou_smoothed": "OU, joined by lines",
}
PHASES = {"oscillating_locked": phase_locked, "oscillating_spread": phase_spread}
either_sign = Rule("-1 (descent of the energy) or 1 (ascent)", lambda value: value in (-1, 1))
RATE, NOISE = 1.0, 2.0**0.5  # of the OU process in arXiv:2605.18870, whose mean is the identity


def dimension_conflict(d: int, kinds: Iterable[str]) -> Iterator[str]:
    """A message if one of the kinds of weights is an oscillation, which is known on S¹ and S² alone."""
    if d not in (2, 3) and not PHASES.keys().isdisjoint(kinds):
        yield f"d: {got(d, 'one of 2, 3 for oscillating weights')}"


def fold(seed: int, *numbers: int) -> Key:
    """The key of a draw: the seed folded with what tells the draw apart."""
    key = jr.key(seed)
    for number in numbers:
        key = jr.fold_in(key, number)
    return key


def draw_heads(key: Key, h: int, d: int, *, sign: int, scale: float, dtype: str) -> TiedHeads:
    """`scale` times the starting heads Z + Zᵀ of arXiv:2605.18870."""
    return Heads.tied(jnp.asarray(scale * random_symmetric(key, h=h, d=d), dtype), sign=sign)


def moving_weights(kind: str, start: TiedHeads, key: Key, T: float, *, scale: float, step: float) -> AbstractPath:
    """Heads from `start` that move over [0, T] as `kind` says, the force and the noise of the paper times `scale`.

    OU weights are drawn every `step` and joined by lines: the energy balance then has no Itô term.
    """
    if kind == "fixed":
        return Constant(start)
    h, d, _ = start.D.shape
    if kind in PHASES:
        return oscillating(start, PHASES[kind](h), scale=scale)
    knots = jnp.arange(round(T / step) + 1) * step
    mean = scale * jnp.eye(d)
    return OrnsteinUhlenbeck(start, mean, RATE, scale * NOISE, unit=16 * step).sample(key, knots).smoothed()


def oscillating(start: TiedHeads, phases: Float[Array, "h"], *, scale: float) -> Oscillating:
    """Heads under `scale` times the periodic force of the paper."""
    force = Oscillating(start, phases)
    parts = {name: scale * getattr(force, name) for name in ("offset", "cosine", "sine")}
    return Oscillating(start, phases, **parts)


def calming_weights(start: TiedHeads, key: Key, T: float, *, calming: float, step: float) -> Interpolated:
    """OU weights whose noise dies away: dD = r(I − D)dt + g e^{−γt} dW, drawn every `step` and joined by lines.

    With D = I + e^{−γt} Y the process Y is Ornstein–Uhlenbeck of mean 0, rate r − γ and constant noise g, so it is
    drawn exactly; γ = `calming` is at most r = 1. D settles at I, and ∫ |D'| dt is finite on the lines.
    """
    knots = jnp.arange(round(T / step) + 1) * step
    d = start.D.shape[-1]
    gap = Heads.tied(start.D - jnp.eye(d, dtype=start.D.dtype)[None], sign=start.sign)
    process = OrnsteinUhlenbeck(gap, jnp.zeros((d, d)), RATE - calming, NOISE, unit=16 * step)
    shaken = process.sample(key, knots).values.D
    decay = jnp.exp(-calming * knots).astype(shaken.dtype)[:, None, None, None]
    limit = jnp.eye(d, dtype=shaken.dtype)[None, None]
    return Interpolated(knots, jax.vmap(lambda D: Heads.tied(D, sign=start.sign))(limit + decay * shaken))
