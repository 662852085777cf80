"""Ornstein–Uhlenbeck processes in any tree of arrays: weights that are pulled to a mean and shaken."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, PyTree, ScalarLike

from .._types import Key, Knots, Scalar, TimesLike, as_float
from ._gauss_markov import gauss_markov
from ._increments import difference, float_dtype
from ._knots import float_leaves, line, map_floats, refuse_non_finite_leaves
from ._noise import DEPTH, clock, noise_times, parameter, refuse_asymmetric, symmetrised
from ._path import AbstractPath, AbstractProcess, Increment
from ._rounded import rounded
from .interpolated import Interpolated


class OrnsteinUhlenbeck(AbstractProcess):
    """dD = r(m - D)dt + g dW from D(0) = `start`, drawn exactly; ½(W + Wᵀ) in place of W for tied heads.

    `start` is any tree of floating arrays (heads); `mean` m is a tree like it, or one array that is broadcast to
    every array of it; `rate` r >= 0 and `noise` g >= 0 are numbers. The clock (`unit`, `depth`) is that of
    `Brownian`: the same key gives the same path at any times and any horizon. All four can be differentiated; the
    rate only in forward mode where the times are traced.

    Raises `ValueError` for a mean of another shape, or not symmetric where the heads are tied, and for a negative or
    non-finite rate, noise or unit. Weights of arXiv:2605.18870: r = 1, m = I, g = √2.
    """

    start: PyTree
    mean: PyTree
    rate: Scalar
    noise: Scalar
    unit: float = eqx.field(static=True)
    depth: int = eqx.field(static=True)

    def __init__(
        self,
        start: Any,
        mean: Any,
        rate: ArrayLike,
        noise: ArrayLike,
        *,
        unit: float | int = 1.0,
        depth: int = DEPTH,
    ):
        self.start = float_leaves(start)
        self.mean = float_leaves(mean)
        refuse_non_finite_leaves(self.start, "start")
        refuse_non_finite_leaves(self.mean, "mean")
        self.rate = parameter(rate, "rate")
        self.noise = parameter(noise, "noise")
        self.unit, self.depth = clock(unit, depth)
        refuse_asymmetric(_like(self.mean, self.start), "mean")

    def sample(self, key: Key, ts: TimesLike) -> "OrnsteinUhlenbeckPath":
        ts = noise_times(ts)
        shaken = gauss_markov(key, self.start, ts, rate=self.rate, unit=self.unit, depth=self.depth)
        shaken = symmetrised(eqx.combine(shaken, self.start))

        def at_knots(start: Array, mean: Array, x: Array) -> Array:
            # The barrier: known numbers would be folded at compile time, by a library that rounds otherwise.
            decayed = jax.lax.optimization_barrier((self.rate * ts).astype(x.dtype))
            decayed = decayed.reshape(-1, *([1] * start.ndim))
            # Written so that D(0) is `start` to the last bit.
            still = rounded(start[None] * jnp.exp(-decayed)) - rounded(mean[None] * jnp.expm1(-decayed))
            return still + rounded(self.noise.astype(x.dtype) * x)

        values = map_floats(at_knots, self.start, _like(self.mean, self.start), shaken)
        return OrnsteinUhlenbeckPath(ts, values, self.mean, self.rate, self.noise)


class OrnsteinUhlenbeckPath(AbstractPath):
    """A drawn path: its `values` at the knots `grid`, `(s, ...)`, joined by lines, with the law that drew it."""

    grid: Knots
    values: PyTree
    mean: PyTree
    rate: Scalar
    noise: Scalar

    def __init__(self, grid: Knots, values: PyTree, mean: PyTree, rate: Scalar, noise: Scalar):
        self.grid = grid
        self.values = values
        self.mean = mean
        self.rate = rate
        self.noise = noise

    @property
    def jumps(self) -> None:
        return None

    def __call__(self, t: ScalarLike) -> PyTree:
        return line(self.grid, self.values, t)

    def derivative(self, t: ScalarLike) -> None:
        return None

    def increment(self, t0: ScalarLike, t1: ScalarLike) -> Increment:
        """Drift r(m - D(t0))·(t1 - t0) of the left end; the rest is the martingale, of variance g²(t1 - t0)."""
        before = self(t0)
        length = jnp.subtract(t1, t0)

        def drift(value: Array, mean: Array) -> Array:
            return (self.rate * length).astype(value.dtype) * (mean - value)

        steady = map_floats(drift, before, _like(self.mean, before))
        martingale = difference(difference(self(t1), before), steady)
        return Increment(steady, martingale, (self.noise**2 * length).astype(float_dtype(before)))

    def smoothed(self) -> Interpolated:
        """The same values with their lines taken as the path itself: finite variation, and no Itô term."""
        return Interpolated(self.grid, self.values)


def _like(mean: PyTree, start: PyTree) -> PyTree:
    """`mean` as a tree like `start`, every array broadcast to the shape and dtype of its own."""
    own = eqx.filter(start, eqx.is_inexact_array)
    if eqx.is_array(mean):
        means = jax.tree.map(lambda _: mean, own)
    else:
        means = eqx.filter(mean, eqx.is_inexact_array)
        if jax.tree.structure(means) != jax.tree.structure(own):
            raise ValueError(
                f"mean must be an array or a tree like start; got {jax.tree.structure(means)} for "
                f"{jax.tree.structure(own)}."
            )
    return eqx.combine(jax.tree.map(_broadcast, means, own), start)


def _broadcast(mean: Array, start: Array) -> Array:
    try:
        return jnp.broadcast_to(as_float(mean).astype(start.dtype), start.shape)
    except ValueError:
        raise ValueError(f"mean must broadcast to the shape {start.shape} of start; got {mean.shape}.") from None
