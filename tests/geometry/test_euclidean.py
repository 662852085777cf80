"""Flat space: the same contract, with nothing to do."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from transformer_flows.geometry import Euclidean

SPACE = Euclidean(2)


def test_lines_and_lengths(dtype):
    x = jnp.array([[0.0, 0], [1, 1]], dtype)
    y = jnp.array([[3.0, 4], [1, 1]], dtype)
    np.testing.assert_array_equal(SPACE.distance(x, y), [5, 0])
    np.testing.assert_array_equal(SPACE.squared_distance(x, y), [25, 0])
    np.testing.assert_array_equal(SPACE.exp(x, SPACE.log(x, y)), y)
    np.testing.assert_array_equal(SPACE.project(x[:, None], y[None]), np.broadcast_to(y[None], (2, 2, 2)))
    np.testing.assert_array_equal(SPACE.retract(x), x)
    outputs = [SPACE.distance(x, y), SPACE.squared_distance(x, y), SPACE.defect(x), SPACE.log(x, y)]
    assert {a.dtype.name for a in outputs} == {dtype}


def test_defect_is_zero_for_finite_vectors():
    np.testing.assert_array_equal(SPACE.defect(jnp.array([[1e9, 0], [jnp.nan, 0], [0, jnp.inf]])), [0, np.inf, np.inf])


def test_distance_at_coincidence_has_zero_derivatives_and_the_square_its_hessian():
    x = jnp.array([1.0, 2.0])

    @jax.jit
    def derivatives(x, y):
        return (
            jax.jacfwd(SPACE.distance)(x, x),
            jax.jacrev(SPACE.distance)(x, x),
            jax.hessian(SPACE.squared_distance)(x, x),
            jax.grad(SPACE.distance)(x, y),
        )

    forward, reverse, hessian, elsewhere = derivatives(x, x - jnp.array([3.0, 4.0]))
    assert (forward == 0).all() and (reverse == 0).all()
    np.testing.assert_array_equal(hessian, 2 * np.eye(2))
    np.testing.assert_allclose(elsewhere, [0.6, 0.8], rtol=1e-15)


def test_uniform_fills_the_cube():
    x = np.asarray(SPACE.uniform(jr.key(0), 20_000))
    assert np.abs(x).max() <= 1
    np.testing.assert_allclose(x.T @ x / len(x), np.eye(2) / 3, atol=4.5 * np.sqrt(1 / 9 / len(x)))
    np.testing.assert_allclose(x.mean(0), 0, atol=4.5 * np.sqrt(1 / 3 / len(x)))


@pytest.mark.parametrize("d", [0, -1, True])
def test_dimension_must_be_a_positive_integer(d):
    with pytest.raises(ValueError, match="d must be an integer"):
        Euclidean(d)
