"""Ornstein–Uhlenbeck weights: exact moments, symmetry, the split of an increment, and derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from transformer_flows.models import Heads, TiedHeads
from transformer_flows.paths import OrnsteinUhlenbeck, OrnsteinUhlenbeckPath

TS = jnp.array([0.0, 0.5, 1.0, 2.5])


def test_moments_of_tied_heads_are_exact():
    """Mean m + e^{-rt}(D(0) - m); variance g²(1 - e^{-2rt})/(2r) on the diagonal and half of it off the diagonal."""
    h, start, mean, r, g = 40_000, np.array([[0.1, -1], [-1, 0]]), np.array([[0.7, 0.5], [0.5, 3]]), 0.8, 1.5
    process = OrnsteinUhlenbeck(TiedHeads(np.tile(start, (h, 1, 1)), sign=1), jnp.asarray(mean), r, g)
    path = process.sample(jr.key(1), TS)
    D = np.asarray(path.values.D)
    np.testing.assert_array_equal(D, np.swapaxes(D, -1, -2))
    np.testing.assert_array_equal(D[0], process.start.D)
    decay = np.exp(-r * np.asarray(TS))[:, None, None]
    variance = g**2 * (1 - decay**2) / (2 * r) * np.array([[1, 0.5], [0.5, 1]])
    bound = 4.5 * np.sqrt(variance / h) + 1e-12
    assert (np.abs(D.mean(1) - (mean + decay * (start - mean))) < bound).all()
    assert (np.abs(D.var(1) - variance) < 4.5 * variance * np.sqrt(2 / h) + 1e-12).all()
    # Heads move independently: the covariance of each with the next one is 0.
    rest = (D - D.mean(1, keepdims=True))[1:]
    assert (np.abs((rest[:, 1:] * rest[:, :-1]).mean(1)) < 4.5 * variance[1:] / np.sqrt(h)).all()


def test_increment_is_drift_of_the_left_end_and_martingale():
    """From values at knots that are given, so that the numbers can be written out."""
    zeros, ones = np.zeros((1, 2, 2)), np.ones((1, 2, 2))
    values = Heads(zeros, ones)
    values = jax.tree.map(lambda leaf: leaf[None] * jnp.array([1.0, 2, 4, 3])[:, None, None, None], values)
    path = OrnsteinUhlenbeckPath(TS, values, Heads(3 * ones, 5 * ones), jnp.asarray(0.8), jnp.asarray(1.5))

    @eqx.filter_jit
    def split(path, t0, t1):
        return path.increment(t0, t1), path(t0), path.smoothed().increment(t0, t1), path.smoothed().derivative(t0)

    increment, before, smooth, slope = split(path, TS[1], TS[2])
    np.testing.assert_allclose(increment.drift.value, 0.8 * (5 - 2) * 0.5 * ones, rtol=1e-14)
    np.testing.assert_allclose(increment.martingale.value, (2 - 1.2) * ones, rtol=1e-14)
    np.testing.assert_allclose(increment.drift.score, 0.8 * 3 * 0.5 * ones, rtol=1e-14)
    np.testing.assert_allclose(increment.martingale.score, -1.2 * ones, rtol=1e-14)
    np.testing.assert_allclose(increment.variance, 1.5**2 * 0.5, rtol=1e-14)
    np.testing.assert_array_equal(before.value, 2 * ones)
    assert path.derivative(0.3) is None and path.jumps is None and (path.grid == TS).all()
    # The same values as a path of lines: all of the change is drift, there is a slope, and no noise.
    np.testing.assert_allclose(smooth.drift.value, 2 * ones, rtol=1e-14)
    np.testing.assert_allclose(slope.value, 4 * ones, rtol=1e-14)
    assert smooth.variance == 0 and (smooth.martingale.value == 0).all()


def test_gradients_agree_with_finite_differences_at_any_rate():
    """In start, mean, rate and noise; at rate 0 the exact transition is 0/0 if written carelessly."""
    ts = jnp.array([0.25, 0.7, 1.5, 2.0])
    weights = jnp.asarray(np.random.default_rng(0).normal(size=4))

    def pull(theta):
        start, mean, rate, noise = theta
        values = OrnsteinUhlenbeck(start, mean, rate, noise, depth=6).sample(jr.key(5), ts).values
        return jnp.sum(weights * values)

    theta = np.array([[1.0, 0.3, rate, 0.9] for rate in (0.0, 1e-3, 0.4, 5.0)])
    reverse = jax.jit(jax.vmap(jax.grad(pull)))(jnp.asarray(theta))
    ahead, behind = (jnp.asarray((theta[:, None] + step * np.eye(4)).reshape(16, 4)) for step in (1e-5, -1e-5))
    many = jax.jit(jax.vmap(pull))
    central = ((many(ahead) - many(behind)) / 2e-5).reshape(4, 4)
    np.testing.assert_allclose(reverse, central, rtol=1e-6, atol=1e-8)
    assert (np.abs(reverse[2:]) > 1e-3).all()


def test_one_trace_for_all_numbers_and_dtype_of_the_start():
    traces = 0

    @eqx.filter_jit
    def sample(process, key):
        nonlocal traces
        traces += 1
        path = process.sample(key, TS)
        assert {leaf.dtype.name for leaf in jax.tree.leaves((path.values, path.increment(0.0, 0.5)))} == {"float32"}
        return path

    start = jnp.zeros((2, 2), jnp.float32)
    for rate, noise, mean in ((1, 2.0, 0.0), (2.5, 1, 1), (0.5, jnp.asarray(1.0), jnp.asarray(2))):
        sample.lower(OrnsteinUhlenbeck(start, mean, rate, noise), jr.key(0))
    assert traces == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": np.eye(3)}, r"mean must broadcast to the shape \(2, 2, 2\) of start; got \(3, 3\)"),
        ({"mean": np.arange(4.0).reshape(2, 2)}, "mean must be symmetric"),
        ({"mean": {"D": np.eye(2)}}, "mean must be an array or a tree like start"),
        ({"mean": np.full((2, 2), np.nan)}, "mean must be finite"),
        ({"rate": -0.1}, "rate must not be negative; got -0.1"),
        ({"rate": np.nan}, "rate must be finite"),
        ({"noise": -1.0}, "noise must not be negative"),
        ({"noise": np.ones(2)}, r"noise must be one number; got shape \(2,\)"),
        ({"unit": 0}, "unit must be a positive finite time"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    good = {"start": TiedHeads(np.zeros((2, 2, 2)), sign=1), "mean": np.eye(2), "rate": 1.0, "noise": 1.0}
    given = good | change
    if isinstance(given["mean"], np.ndarray):
        given["mean"] = jnp.asarray(given["mean"])
    with pytest.raises(ValueError, match=message):
        OrnsteinUhlenbeck(**given)
