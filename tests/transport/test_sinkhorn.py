"""The Sinkhorn distance against exact W_2, POT's regularised transport, closed forms, and finite differences."""

import functools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import ot
import pytest

import transformer_flows as tfl
from transformer_flows.transport import _duality, _potentials, sinkhorn_distance, wasserstein

SPHERE, SPACE = tfl.Sphere(3), tfl.Euclidean(3)
X, Y = SPHERE.uniform(jr.key(0), 16), SPHERE.uniform(jr.key(1), 12)
precise = functools.partial(sinkhorn_distance, tolerance=1e-11)


def costs(x, y):
    return np.asarray(SPHERE.squared_distance(x[:, None], y[None]))


@pytest.mark.parametrize("epsilon", [1.0, 0.6])
def test_the_divergence_is_that_of_pot(epsilon):
    regularised = lambda x, y: _pot(costs(x, y), epsilon)
    expected = regularised(X, Y) - (regularised(X, X) + regularised(Y, Y)) / 2
    np.testing.assert_allclose(precise(X, Y, SPHERE, epsilon=epsilon).value ** 2, expected, rtol=1e-7)


def test_bounds_hold_and_meet():
    exact = ot.emd2([], [], costs(X, Y)) ** 0.5
    found = [sinkhorn_distance(X, Y, SPHERE, epsilon=epsilon) for epsilon in (1.0, 0.1, 0.01)]
    for one in found:
        assert one.converged and one.lower <= exact <= one.upper
        assert one.error == max(one.upper - one.value, one.value - one.lower)
    assert found[0].error > found[1].error > found[2].error
    assert found[2].error < 0.03 * exact


def _pot(cost, epsilon):
    """⟨P, C⟩ + ε KL(P | ab)."""
    n, m = cost.shape
    plan = ot.sinkhorn([], [], cost, epsilon, method="sinkhorn_log", numItermax=5000, stopThr=1e-9)
    return np.sum(plan * cost) + epsilon * np.sum(plan * np.log(plan * n * m))


def test_too_few_iterations_are_reported_and_the_bounds_still_hold():
    exact = ot.emd2([], [], costs(X, Y)) ** 0.5
    for epsilon in (1e-5, 1e-7, 1e-30):
        found = sinkhorn_distance(X, Y, SPHERE, epsilon=epsilon)
        assert not found.converged
        assert found.lower <= exact <= found.upper
        assert abs(found.value - exact) <= found.error < np.inf


def test_tiny_distances_keep_their_digits(dtype):
    x = X.astype(dtype)
    shifted = x + jnp.asarray(1e-6, dtype)
    exact = wasserstein(x, shifted, SPACE)
    for epsilon in (1e-6, 1e-2, 1.0):
        same = sinkhorn_distance(x, x[::-1], SPACE, epsilon=epsilon)
        assert same.value == same.error == same.lower == same.upper == 0
        near = sinkhorn_distance(x, shifted, SPACE, epsilon=epsilon)
        assert near.value.dtype == near.error.dtype == dtype
        np.testing.assert_allclose(near.value, exact, rtol=1e-5)
        assert near.lower <= exact * (1 + 1e-6) and near.error <= 1.0001 * exact


def test_coincident_tokens():
    """One point against one point is their distance, for any masses and ε; repeated tokens are no obstacle."""
    one, other = jnp.tile(X[:1], (16, 1)), jnp.tile(X[1:2], (12, 1))
    for epsilon in (None, 1e-3):
        found = sinkhorn_distance(one, other, SPHERE, epsilon=epsilon)
        np.testing.assert_allclose(
            [found.value, found.lower, found.upper], SPHERE.distance(X[0], X[1]) * jnp.ones(3), rtol=1e-12
        )
    assert sinkhorn_distance(one, one[:12], SPHERE).value == 0  # at which ε has no scale
    repeated = jnp.tile(X[:4], (4, 1))
    found = sinkhorn_distance(repeated, jnp.tile(X[3::-1], (3, 1)), SPHERE)
    assert found.value < 1e-7 and found.upper < 1e-7


@jax.jit
def along(x, y, epsilon, changes):
    """The distance and its derivative along a change of (x, y, ε), by forward mode."""
    return jax.jvp(lambda *a: precise(*a[:2], SPHERE, epsilon=a[2]).value, (x, y, epsilon), changes)


def test_derivatives_equal_finite_differences_and_are_zero_at_zero():
    move, eps = SPHERE.project(X, jr.normal(jr.key(4), X.shape)), 1e-5
    still, held, zero = jnp.zeros_like(Y), jnp.zeros(()), jnp.zeros_like(X)
    value = lambda x, epsilon: along(x, Y, jnp.asarray(epsilon), (zero, still, held))[0]
    in_x = along(X, Y, jnp.asarray(0.3), (move, still, held))[1]
    finite = (value(SPHERE.retract(X + eps * move), 0.3) - value(SPHERE.retract(X - eps * move), 0.3)) / (2 * eps)
    np.testing.assert_allclose(in_x, finite, rtol=1e-7)
    in_epsilon = along(X, Y, jnp.asarray(0.3), (zero, still, held + 1))[1]
    np.testing.assert_allclose(in_epsilon, (value(X, 0.3 + eps) - value(X, 0.3 - eps)) / (2 * eps), rtol=1e-7)

    gradient = jax.jit(jax.grad(lambda x, y: precise(x, y, SPHERE, epsilon=0.3).value))
    np.testing.assert_allclose(jnp.vdot(gradient(X, Y), move), in_x, rtol=1e-12)
    np.testing.assert_array_equal(gradient(jnp.tile(Y[:1], (16, 1)), jnp.tile(Y[:1], (12, 1))), 0)


def test_traced_tokens_that_are_not_finite_are_an_error():
    with pytest.raises(Exception, match="x must be finite"):
        still = jnp.zeros_like(X), jnp.zeros_like(Y), jnp.zeros(())
        jax.block_until_ready(along(X.at[0, 0].set(jnp.nan), Y, jnp.asarray(0.3), still))


def test_blocks_of_rows_change_nothing():
    numerics = _potentials.Numerics(jnp.asarray(0.3), jnp.asarray(1e-6), 500)

    @functools.partial(jax.jit, static_argnums=1)
    def everything(x, block):
        problem = _duality.Problem(x, Y, SPHERE, block)
        g, converged = _potentials.potential(problem, numerics)
        slope = jax.grad(lambda x: _duality.semi_dual(_duality.Problem(x, Y, SPHERE, block), g, numerics.epsilon))(x)
        plan = _duality.entropic_plan_cost(problem, g, numerics.epsilon)
        return g, converged, slope, plan, _duality.lower_bound(problem, g)

    for whole, blocks in zip(*(jax.tree.leaves(everything(X, block)) for block in (None, 5)), strict=True):
        np.testing.assert_allclose(whole, blocks, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    ("x", "numerics", "words"),
    [
        (X[:0], {}, "x must be tokens.*n >= 1"),
        (X[:, :2], {}, r"x must be tokens \(n, 3\)"),
        (X.at[2, 1].set(jnp.nan), {}, r"x must be finite.*\(2, 1\)"),
        (X, {"epsilon": 0.0}, "epsilon must be a positive number; got 0.0"),
        (X, {"epsilon": float("nan")}, "epsilon must be a positive number"),
        (X, {"tolerance": -1}, "tolerance must be a positive number"),
        (X, {"max_iterations": 0}, "max_iterations must be an integer of at least 1"),
    ],
)
def test_wrong_arguments_are_refused(x, numerics, words):
    with pytest.raises(ValueError, match=words):
        sinkhorn_distance(x, Y, SPHERE, **numerics)
