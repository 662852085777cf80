"""Sliced W_2 against exact distances, POT, closed forms of the mean over directions, and finite differences."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import ot
import pytest

import transformer_flows as tfl
from transformer_flows.transport import sliced_wasserstein, wasserstein
from transformer_flows.transport.sliced import _angles, _planes, squared_on_circle

SPHERE, SPACE, KEY = tfl.Sphere(3), tfl.Euclidean(3), jr.key(7)
X, Y = (SPHERE.uniform(jr.key(seed), 12) for seed in (0, 1))


def on_circle(angles):
    return jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)


def wrapped(angles):
    return (angles + np.pi) % (2 * np.pi) - np.pi


def test_pot_on_the_same_directions():
    ours = sliced_wasserstein(X, Y, SPHERE, KEY)
    planes = np.asarray(_planes(KEY, 128, 3)).transpose(0, 2, 1)
    theirs = ot.sliced_wasserstein_sphere(np.asarray(X), np.asarray(Y), projections=planes, n_projections=128)
    np.testing.assert_allclose(ours.value, 2 * np.pi * theirs, rtol=1e-9)  # its angles are over 2π
    np.testing.assert_allclose(planes.transpose(0, 2, 1) @ planes, np.broadcast_to(np.eye(2), (128, 2, 2)), atol=1e-14)


def test_mean_over_directions_of_a_translation():
    """E⟨θ, v⟩² = |v|²/d, and the reported error is the spread of that mean over keys."""
    shift = jnp.array([[0.3, -0.4, 1.2]])
    many = jax.vmap(lambda key: sliced_wasserstein(X, X + shift, SPACE, key))(jr.split(KEY, 200))
    np.testing.assert_allclose(np.mean(many.value**2), 1.3**2 / 3, rtol=0.02)
    np.testing.assert_allclose(np.std(many.value), np.mean(many.error), rtol=0.15)


def test_one_direction_is_exact_on_the_circle_and_the_line(dtype):
    clouds = (on_circle(angles).astype(dtype) for angles in jr.uniform(KEY, (2, 40), minval=-3, maxval=9))
    sliced = sliced_wasserstein(*clouds, tfl.Sphere(2), KEY, directions=1)
    clouds = (on_circle(angles) for angles in jr.uniform(KEY, (2, 40), minval=-3, maxval=9))
    assert sliced.value.dtype == sliced.error.dtype == dtype
    np.testing.assert_allclose(sliced.value, wasserstein(*clouds, tfl.Sphere(2)), rtol=1e-6)
    line = sliced_wasserstein(X[:, :1], Y[:, :1], tfl.Euclidean(1), KEY)
    np.testing.assert_allclose(line.value, wasserstein(X[:, :1], Y[:, :1], tfl.Euclidean(1)), rtol=1e-12)
    assert sliced.error == line.error == 0
    assert np.isinf(sliced_wasserstein(X, Y, SPHERE, KEY, directions=1).error)


def test_best_shift_is_found_for_ties_clusters_and_cuts(dtype):
    """Against the exact assignment, on angles rounded, gathered, and put at the cut."""
    draw, square = np.random.default_rng(0), jax.jit(squared_on_circle)
    exact = jax.jit(lambda a, b: wasserstein(on_circle(a), on_circle(b), tfl.Sphere(2)) ** 2)
    for scale, centre in [(np.pi, 0), (0.3, np.pi), (0.01, np.pi), (1.0, 2.0)]:
        for decimals in (1, 9):
            a, b = (wrapped(np.round(draw.uniform(-scale, scale, 7) + centre, decimals)) for _ in range(2))
            expected, atol = exact(a, b), 1e-6 if dtype == "float32" else 1e-13
            np.testing.assert_allclose(square(jnp.asarray(a, dtype), jnp.asarray(b, dtype)), expected, atol=atol)


def test_small_rotations_of_many_tokens_keep_their_digits():
    angles = wrapped(jnp.asarray(np.random.default_rng(1).uniform(0, 7, 3000), "float32"))
    square = jax.jit(squared_on_circle)
    assert square(angles, angles[::-1]) == 0
    np.testing.assert_allclose(square(angles, wrapped(angles + np.float32(1e-3))), 1e-6, rtol=1e-3)


@pytest.mark.parametrize("manifold", [SPHERE, SPACE], ids=["circles", "lines"])
def test_gradient_equals_finite_differences_and_is_zero_at_zero(manifold):
    value_and_gradient = jax.jit(jax.value_and_grad(lambda x: sliced_wasserstein(x, Y, manifold, KEY).value))
    move, eps = SPHERE.project(X, jr.normal(jr.key(4), X.shape)), 1e-6
    finite = (value_and_gradient(X + eps * move)[0] - value_and_gradient(X - eps * move)[0]) / (2 * eps)
    np.testing.assert_allclose(jnp.vdot(value_and_gradient(X)[1], move), finite, rtol=1e-7)
    value, gradient = value_and_gradient(Y[::-1])
    assert value == 0
    np.testing.assert_array_equal(gradient, 0)


def test_poles_of_a_plane(dtype):
    """A token that projects to 0 has angle 0 and moves nothing; one that nearly does has finite derivatives."""
    tokens = jnp.array([[0, 0, 1], [1e-30, 0, 1], [0, 1, 0]], dtype)
    plane = jnp.eye(3, dtype=dtype)[:2]
    np.testing.assert_allclose(_angles(tokens, plane), [0, 0, np.pi / 2], rtol=1e-6)
    slopes = jax.jit(jax.jacrev(lambda x: _angles(x, plane)))(tokens)
    np.testing.assert_array_equal(slopes[0], 0)
    np.testing.assert_allclose(slopes[1, 1, 1], 1e30, rtol=1e-6)
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize(
    ("x", "manifold", "directions", "words"),
    [
        (X[:5], SPHERE, 8, "one size; got 5 and 12"),
        (X[:, :2], SPHERE, 8, r"x must be tokens \(n, 3\)"),
        (X.at[2, 1].set(jnp.nan), SPHERE, 8, r"x must be finite.*\(2, 1\)"),
        (X, SPHERE, 0, "directions must be an integer of at least 1; got 0"),
    ],
)
def test_wrong_arguments_are_refused(x, manifold, directions, words):
    with pytest.raises(ValueError, match=words):
        sliced_wasserstein(x, Y, manifold, KEY, directions=directions)
