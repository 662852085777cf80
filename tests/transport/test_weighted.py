"""The weighted distance: closed forms, the definition of its action in NumPy, its bounds, derivatives."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import transformer_flows as tfl
from transformer_flows.transport import wasserstein, weighted_distance

SPHERE, CIRCLE = tfl.Sphere(3), tfl.Sphere(2)


def clouds(n, d=3):
    draws = np.random.default_rng(n).normal(size=(2, n, d))
    return jnp.asarray(draws / np.linalg.norm(draws, axis=-1, keepdims=True))


def heads(scale=1.0, h=2, d=3):
    Z = np.random.default_rng(h).normal(size=(h, d, d))
    return tfl.Heads.tied(scale * (Z + Z.transpose(0, 2, 1)) / 2, sign=-1)


def numpy_mobility(x, D):
    """b̂ of spec "Geometry" at every token."""
    return 1 / np.mean([1 / np.exp(x @ matrix @ x.T).mean(axis=1) for matrix in np.asarray(D)], axis=0)


def numpy_action(path, D, parts=40):
    """The action of tokens on geodesic arcs between the slices: trapezoids on a much finer grid."""
    path, total = np.asarray(path), 0.0
    for start, end in itertools.pairwise(path):
        angle = np.arccos(np.clip((start * end).sum(axis=1), -1, 1))[:, None]
        s = np.linspace(0, 1, parts + 1)
        at = [(np.sin((1 - u) * angle) * start + np.sin(u * angle) * end) / np.sin(angle) for u in s]
        mobility = np.trapezoid([numpy_mobility(x, D) for x in at], s, axis=0)
        total += np.mean(mobility * angle[:, 0] ** 2)
    return (len(path) - 1) * total


def test_without_heads_it_is_the_wasserstein_distance(dtype):
    x, y = clouds(5).astype(dtype)
    found = weighted_distance(x, y, heads(0.0), SPHERE, slices=4)
    assert found.converged and found.between and found.value.dtype == dtype
    np.testing.assert_allclose(found.value, wasserstein(x, y, SPHERE), rtol=1e-6 if dtype == "float32" else 1e-13)
    assert found.lower == found.upper


def test_constant_mobility_gives_a_multiple():
    """One token under D_h = λ_h I has the mobility e^{λ_h} everywhere; b̂ is their harmonic mean."""
    x, y = clouds(1)
    lam = np.array([0.7, -1.1])
    found = weighted_distance(x, y, tfl.Heads.tied(lam[:, None, None] * np.eye(3), sign=-1), SPHERE, slices=4)
    expected = np.mean(np.exp(-lam)) ** -0.5 * SPHERE.distance(x, y)[0]
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)
    assert found.between


def test_one_token_on_the_circle_is_a_line_integral_at_second_order():
    """W = ∫ √b̂ dθ along the arc: the cost is the length in a conformal metric."""
    D = heads(d=2).D
    token = lambda angle: jnp.array([[jnp.cos(angle), jnp.sin(angle)]])
    exact = scipy.integrate.quad(lambda a: numpy_mobility(np.asarray(token(a)), D)[0] ** 0.5, 0.2, 2.0)[0]
    values = [weighted_distance(token(0.2), token(2.0), heads(d=2), CIRCLE, slices=k).value for k in (6, 12)]
    errors = np.array(values) - exact
    assert (errors > 0).all()  # an upper estimate
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), 2, atol=0.15)


def test_value_is_the_action_of_its_path_which_no_neighbour_beats():
    x, y = clouds(5)
    found = weighted_distance(x, y, heads(2.0), SPHERE, slices=4)
    D = heads(2.0).D
    assert found.converged and found.between
    np.testing.assert_allclose(found.path[jnp.array([0, -1])], jnp.stack([x, y[_matching(found, y)]]), atol=1e-15)
    best = numpy_action(found.path, D)
    np.testing.assert_allclose(found.value**2, best, rtol=1e-3)  # Simpson's rule with one middle against 40 parts
    geodesic = numpy_action(_slices(x, found.path[-1], 4), D)
    assert best < 0.98 * geodesic
    rng = np.random.default_rng(0)
    for _ in range(5):
        moved = np.array(found.path)
        moved[1:-1] += 0.03 * rng.normal(size=moved[1:-1].shape)
        moved /= np.linalg.norm(moved, axis=-1, keepdims=True)
        assert numpy_action(moved, D) > best


def _matching(found, y):
    return jnp.argmin(SPHERE.squared_distance(found.path[-1][:, None], y[None]), axis=1)


def _slices(x, y, k):
    return SPHERE.exp(x[None], jnp.linspace(0, 1, k + 1)[:, None, None] * SPHERE.log(x, y)[None])


def test_derivative_by_tokens_and_heads():
    x, y = clouds(5)
    direction = SPHERE.project(x, clouds(5)[1])

    @jax.jit
    @lambda f: jax.value_and_grad(f, argnums=(0, 1))
    def value(shift, scale):
        weights = tfl.Heads.tied(scale * heads().D, sign=-1)
        found = weighted_distance(SPHERE.exp(x, shift * direction), y, weights, SPHERE, slices=4, tolerance=1e-9)
        return found.value

    at, h = jnp.array([0.0, 1.0]), 1e-4
    for k in range(2):
        step = h * jnp.eye(2)[k]
        difference = (value(*(at + step))[0] - value(*(at - step))[0]) / (2 * h)
        np.testing.assert_allclose(value(*at)[1][k], difference, rtol=1e-6)


def test_coincident_clouds_have_distance_zero_and_no_nan():
    x, _ = clouds(5)
    together = jnp.tile(x[:1], (5, 1))
    for cloud in (x, together):
        found = weighted_distance(cloud, cloud[::-1], heads(2.0), SPHERE, slices=4)
        np.testing.assert_allclose([found.value, found.lower, found.upper], 0, atol=1e-15)
        assert found.between and found.converged


def test_wrong_arguments():
    x, y = clouds(5)
    with pytest.raises(ValueError, match="one size; got 5 and 4"):
        weighted_distance(x, y[:4], heads(), SPHERE)
    with pytest.raises(ValueError, match="antipodal"):
        weighted_distance(x[:1], -x[:1], heads(), SPHERE)
    with pytest.raises(ValueError, match="slices must be an integer of at least 2"):
        weighted_distance(x, y, heads(), SPHERE, slices=1)
    with pytest.raises(ValueError, match="y must be finite"):
        weighted_distance(x, y.at[0].set(jnp.nan), heads(), SPHERE)
