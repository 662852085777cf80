"""Weights that follow a periodic force: the sustained oscillation of arXiv:2605.18870."""

from math import cos, pi, sin
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PyTree, ScalarLike

from .._types import as_float
from ._increments import without_noise
from ._knots import float_leaves, map_floats, refuse_non_finite_leaves
from ._noise import refuse_asymmetric
from ._path import AbstractPath, Increment


class Oscillating(AbstractPath):
    """The exact solution of D_h' = F(t + φ_h) - D_h, D_h(0) = `start`, for every head h.

    `start` is any tree of arrays `(h, d, d)` (heads), `phases` φ are `(h,)`: see `phase_locked` and `phase_spread`.
    F(s) = `offset` + Σ_m `cosine[m-1]` cos(ms) + `sine[m-1]` sin(ms), with `offset` `(d, d)` and the others
    `(m, d, d)`; by default the force of the paper, known for d = 2 (its S¹) and d = 3 (its S²).

    Raises `ValueError` for other shapes, a force that is not symmetric where the heads are tied, and a missing force
    for other d.
    """

    start: PyTree
    phases: Float[Array, "h"]
    offset: Float[Array, "d d"]
    cosine: Float[Array, "m d d"]
    sine: Float[Array, "m d d"]

    def __init__(
        self,
        start: Any,
        phases: ArrayLike,
        *,
        offset: ArrayLike | None = None,
        cosine: ArrayLike | None = None,
        sine: ArrayLike | None = None,
    ):
        self.start = float_leaves(start)
        self.phases = as_float(phases)
        d = _size(self.start, self.phases)
        if offset is None or cosine is None or sine is None:
            if not (offset is None and cosine is None and sine is None):
                raise ValueError("offset, cosine and sine must be given together; got only some of them.")
            offset, cosine, sine = _force_of_paper(d)
        self.offset, self.cosine, self.sine = as_float(offset), as_float(cosine), as_float(sine)
        if self.offset.shape != (d, d) or self.cosine.shape != self.sine.shape or self.cosine.shape[1:] != (d, d):
            raise ValueError(
                f"offset must be ({d}, {d}), cosine and sine (m, {d}, {d}); got {self.offset.shape}, "
                f"{self.cosine.shape} and {self.sine.shape}."
            )
        for name in ("start", "phases", "offset", "cosine", "sine"):
            refuse_non_finite_leaves(getattr(self, name), name)
        parts = jnp.concatenate([self.offset[None], self.cosine, self.sine])[:, None]
        like = map_floats(lambda leaf: jnp.broadcast_to(parts, (len(parts), *leaf.shape)), self.start)
        refuse_asymmetric(like, "the force")

    @property
    def grid(self) -> None:
        return None

    @property
    def jumps(self) -> None:
        return None

    def __call__(self, t: ScalarLike) -> PyTree:
        decay = jnp.exp(-jnp.asarray(t))
        at_start, now = self._response(0.0), self._response(t)
        # Written so that D(0) is `start` to the last bit.
        return map_floats(lambda v: decay.astype(v.dtype) * v + (now - decay * at_start).astype(v.dtype), self.start)

    def derivative(self, t: ScalarLike) -> PyTree:
        decay = jnp.exp(-jnp.asarray(t))
        at_start, velocity = self._response(0.0), self._response_velocity(t)
        return map_floats(
            lambda v: (velocity + decay * at_start).astype(v.dtype) - decay.astype(v.dtype) * v, self.start
        )

    def increment(self, t0: ScalarLike, t1: ScalarLike) -> Increment:
        return without_noise(self, t0, t1)

    def force(self, t: ScalarLike) -> Float[Array, "h d d"]:
        """F(t + φ_h)."""
        return _series(self.offset, self.cosine, self.sine, jnp.asarray(t) + self.phases)

    def _response(self, t: ScalarLike) -> Float[Array, "h d d"]:
        """The periodic solution, towards which every solution decays as e^{-t}."""
        return _series(self.offset, *self._amplitudes(), jnp.asarray(t) + self.phases)

    def _response_velocity(self, t: ScalarLike) -> Float[Array, "h d d"]:
        p, q = self._amplitudes()
        m = self._frequencies()
        return _series(jnp.zeros_like(self.offset), m * q, -m * p, jnp.asarray(t) + self.phases)

    def _amplitudes(self) -> tuple[Float[Array, "m d d"], Float[Array, "m d d"]]:
        """P and Q of P cos ms + Q sin ms, the periodic solution for the force C cos ms + S sin ms."""
        m = self._frequencies()
        return (self.cosine - m * self.sine) / (1 + m**2), (self.sine + m * self.cosine) / (1 + m**2)

    def _frequencies(self) -> Float[Array, "m 1 1"]:
        return jnp.arange(1, self.cosine.shape[0] + 1, dtype=self.cosine.dtype)[:, None, None]


def phase_locked(h: int) -> Float[Array, "{h}"]:
    """Phases 0: the heads move together, and the gradient stays alive."""
    return jnp.zeros(h)


def phase_spread(h: int) -> Float[Array, "{h}"]:
    """Phases 2πk/h: the heads average out, and the tokens settle."""
    return 2 * jnp.pi * jnp.arange(h) / h


def _series(offset: Array, cosine: Array, sine: Array, s: Float[Array, "h"]) -> Float[Array, "h d d"]:
    total = jnp.broadcast_to(offset[None], (*s.shape, *offset.shape))
    for m in range(cosine.shape[0]):
        angle = ((m + 1) * s)[:, None, None]
        total = total + jnp.cos(angle) * cosine[m][None] + jnp.sin(angle) * sine[m][None]
    return total


def _size(start: PyTree, phases: Array) -> int:
    shapes = {leaf.shape for leaf in jax.tree.leaves(start) if eqx.is_inexact_array(leaf)}
    shape = next(iter(shapes), ())
    if len(shapes) != 1 or len(shape) != 3 or shape[1] != shape[2]:
        raise ValueError(f"start must hold arrays of one shape (h, d, d); got {sorted(shapes)}.")
    if phases.shape != shape[:1]:
        raise ValueError(f"phases must be one per head, ({shape[0]},); got {phases.shape}.")
    return shape[1]


def _force_of_paper(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offset, cosines and sines of F in arXiv:2605.18870, with frequencies 1 and 2."""
    if d not in (2, 3):
        raise ValueError(f"the force is known for d = 2 and 3; for d = {d} give offset, cosine and sine.")
    cosine, sine = np.zeros((2, d, d)), np.zeros((2, d, d))
    sine[1, 0, 1] = sine[1, 1, 0] = 1
    cosine[0, 0, 0] = 1.5
    if d == 2:
        cosine[0, 1, 1] = -1.5
    else:
        sine[0, 0, 2] = sine[0, 2, 0] = 1
        sine[0, 1, 1] = 1.5
        cosine[1, 1, 2] = cosine[1, 2, 1] = 1
        cosine[0, 2, 2], sine[0, 2, 2] = 1.5 * cos(pi / 4), -1.5 * sin(pi / 4)
    return 2 * np.eye(d), cosine, sine
