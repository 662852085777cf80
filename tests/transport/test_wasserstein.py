"""W_2 by assignment against all permutations, translations, the line, and finite differences."""

import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl
from transformer_flows.transport import (
    bures_wasserstein,
    optimal_matching,
    sliced_wasserstein,
    wasserstein,
    weighted_distance,
)

SPHERE, SPACE = tfl.Sphere(3), tfl.Euclidean(3)
X, Y = (SPHERE.uniform(jr.key(seed), 6) for seed in (0, 1))


@pytest.mark.parametrize("manifold", [SPHERE, SPACE], ids=["geodesic", "chordal"])
def test_least_over_all_permutations(manifold):
    chord = np.linalg.norm(X[:, None] - Y[None], axis=-1)
    cost = chord**2 if manifold is SPACE else (2 * np.arcsin(chord / 2)) ** 2
    totals = [cost[range(6), list(order)].mean() for order in itertools.permutations(range(6))]
    np.testing.assert_allclose(wasserstein(X, Y, manifold), np.sqrt(min(totals)), rtol=1e-12)
    np.testing.assert_allclose(wasserstein(Y, X, manifold), wasserstein(X, Y, manifold), rtol=1e-13)


def test_translated_and_reordered_clouds():
    shift = jnp.array([0.3, -0.4, 1.2])
    np.testing.assert_allclose(wasserstein(X, X[::-1] + shift[None], SPACE), 1.3, rtol=1e-13)
    np.testing.assert_array_equal(optimal_matching(X, X[::-1], SPHERE), np.arange(6)[::-1])
    assert wasserstein(X, X[::-1], SPHERE) == 0


def test_on_the_line_it_matches_sorted_values():
    x, y = (jr.normal(jr.key(seed), (500, 1)) for seed in (2, 3))
    expected = np.sqrt(np.mean((np.sort(x[:, 0]) - np.sort(y[:, 0])) ** 2))
    np.testing.assert_allclose(wasserstein(x, y, tfl.Euclidean(1)), expected, rtol=1e-12)


def test_gradient_equals_finite_differences_and_is_zero_at_zero():
    gradient = jax.jit(jax.grad(lambda x: wasserstein(x, Y, SPACE)))
    move, eps = jr.normal(jr.key(4), X.shape), 1e-6
    finite = (wasserstein(X + eps * move, Y, SPACE) - wasserstein(X - eps * move, Y, SPACE)) / (2 * eps)
    np.testing.assert_allclose(jnp.vdot(gradient(X), move), finite, rtol=1e-7)
    np.testing.assert_array_equal(gradient(Y[::-1]), 0)


def test_under_transformations_and_in_both_precisions(dtype):
    pairs = jnp.stack([X, Y]).astype(dtype), jnp.stack([Y, Y]).astype(dtype)
    values = jax.jit(jax.vmap(lambda x, y: wasserstein(x, y, SPHERE)))(*pairs)
    assert values.dtype == dtype
    np.testing.assert_allclose(values, [wasserstein(X, Y, SPHERE), 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (X, Y[:5], "one size; got 6 and 5"),
        (X[:, :2], Y, r"x must be tokens \(n, 3\)"),
        (X[:0], Y[:0], "n >= 1"),
        (X.at[2, 1].set(jnp.nan), Y, r"x must be finite.*\(2, 1\)"),
    ],
)
def test_wrong_clouds_are_refused(x, y, words):
    with pytest.raises(ValueError, match=words):
        wasserstein(x, y, SPHERE)


def test_integers_are_numbers_and_other_spaces_are_refused():
    """Distances of integers are those of floats; tokens off the sphere and complex ones are refused."""
    far = np.array([[100_000, 0, 0]])
    line = tfl.Euclidean(3)
    assert wasserstein(far, jnp.zeros((1, 3), jnp.int32), line) == 1e5
    axes = jnp.eye(3, dtype=int)
    turned = axes[jnp.array([1, 1, 1])]
    for distance in (
        lambda x, y: wasserstein(x, y, SPHERE),
        lambda x, y: sliced_wasserstein(x, y, SPHERE, jax.random.key(0), directions=4).value,
        lambda x, y: weighted_distance(x, y, tfl.Heads.tied(jnp.eye(3), sign=1), SPHERE, slices=2).value,
    ):
        assert distance(axes, turned) == distance(axes.astype(float), turned.astype(float)) > 0
    with pytest.raises(ValueError, match=r"x must lie on Sphere\(3\); token 0"):
        wasserstein(2 * axes, turned, SPHERE)
    with pytest.raises(ValueError, match="must be real"):
        wasserstein(1j * axes, turned, SPHERE)


def test_what_is_not_a_number_is_not_a_distance_of_zero():
    unknown = jnp.full(3, jnp.nan)
    found = jax.jit(lambda m: bures_wasserstein(m, jnp.eye(3), jnp.zeros(3), jnp.eye(3)))(unknown)
    assert np.isnan(found)
    with pytest.raises(ValueError, match="norms below"):
        weighted_distance(jnp.eye(3), jnp.eye(3), tfl.Heads.tied(1e3 * jnp.eye(3), sign=1), SPHERE)
