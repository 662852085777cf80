"""The sphere against closed forms, and its derivatives at the points where the usual formulas give NaN."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from transformer_flows.geometry import Sphere

SPHERE = Sphere(3)
# Compiled whole: method by method and operation by operation, compilation would be most of the time of these tests.
project, retract, defect, exp, log, distance, squared_distance = map(
    eqx.filter_jit,
    (
        SPHERE.project,
        SPHERE.retract,
        SPHERE.defect,
        SPHERE.exp,
        SPHERE.log,
        SPHERE.distance,
        SPHERE.squared_distance,
    ),
)
ANGLES = np.array([0, 1e-12, 1e-8, 1e-4, 0.1, 0.3, 1, 2, 3, np.pi - 1e-4, np.pi - 1e-8, np.pi - 1e-12, np.pi])


def uniform(n, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def on_great_circle(angles, dtype):
    """Points at `angles` from a fixed one on a great circle that is no coordinate circle."""
    x, u = np.array([2.0, 1, -2]) / 3, np.array([1.0, 2, 2]) / 3
    y = np.cos(angles)[:, None] * x + np.sin(angles)[:, None] * u
    v = angles[:, None] * u
    return tuple(jnp.asarray(np.broadcast_to(a, y.shape), dtype) for a in (x, y, v))


def test_distance_is_the_angle_to_rounding(dtype):
    x, y, _ = on_great_circle(ANGLES, dtype)
    eps = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(distance(x, y), float), ANGLES, rtol=0, atol=8 * eps)
    np.testing.assert_allclose(np.asarray(squared_distance(x, y), float), ANGLES**2, rtol=0, atol=32 * eps)


def test_distance_keeps_relative_digits_near_zero(dtype):
    angles = np.array([1e-3, 1e-10, 1e-20, 1e-30])
    x = jnp.asarray(np.array([[1.0, 0, 0]] * 4), dtype)
    y = jnp.asarray(np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1), dtype)
    # In float32 the first coordinate, cos 1e-3, is itself a rounded number: the length of y is not quite 1.
    np.testing.assert_allclose(distance(x, y), angles, rtol=1e-13 if dtype == "float64" else 2e-5)


def test_exp_and_log_are_the_great_circle_and_inverse(dtype):
    eps = float(jnp.finfo(dtype).eps)
    x, y, v = on_great_circle(ANGLES, dtype)
    assert np.abs(exp(x, v) - y).max() < 8 * eps
    closest = np.pi - ANGLES < 100 * eps  # as good as antipodal: refused
    angles = np.where(closest, 1.0, ANGLES)
    x, y, v = on_great_circle(angles, dtype)
    error = np.linalg.norm(np.asarray(log(x, y) - v, float), axis=1)
    # The rounding of y moves the direction by eps/sin θ, and so the velocity by θ times that.
    assert (error <= 16 * eps * np.maximum(1, angles / np.maximum(np.sin(angles), eps))).all()


def test_log_has_relative_digits_near_zero():
    x, y = np.broadcast_to([1.0, 0, 0], (13, 3)), np.broadcast_to([1.0, 1e-20, 0], (13, 3))
    np.testing.assert_allclose(log(jnp.asarray(x), jnp.asarray(y)), y - x, rtol=1e-14)


def test_project_is_the_tangent_part():
    x, v = uniform(13), np.random.default_rng(1).normal(size=(13, 3))
    expected = np.einsum("nij,nj->ni", np.eye(3) - x[:, :, None] * x[:, None, :], v)
    np.testing.assert_allclose(project(jnp.asarray(x), jnp.asarray(v)), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_retract_neither_overflows_nor_underflows(scale):
    x = jnp.asarray(np.array([[3.0, 0, 4]]) * scale, "float32")
    np.testing.assert_allclose(retract(x), [[0.6, 0, 0.8]], rtol=2e-7)


def test_defect_is_the_distance_to_the_sphere():
    x = jnp.array([[0.0, 3, 4], [0, 0, 0.5], [0, 1, 0], [0, 0, 0], [jnp.inf, 0, 0], [jnp.nan, 0, 0]])
    np.testing.assert_array_equal(defect(x), [4, 0.5, 0, jnp.inf, jnp.inf, jnp.inf])


def test_gradient_of_distances_with_a_coincident_pair():
    """32 tokens, two equal: self-pairs and the coincident pair give 0, all others the unit tangent vector."""
    x = uniform(32)
    x[7] = x[3]

    def mean_distance(x):
        return jnp.mean(SPHERE.distance(x[:, None], x[None]))

    reverse, forward = jax.jit(lambda x: (jax.jacrev(mean_distance)(x), jax.jacfwd(mean_distance)(x)))(jnp.asarray(x))
    cosine = x @ x.T
    distinct = cosine < 1 - 1e-9
    sine = np.sqrt(np.where(distinct, 1 - cosine**2, 1))
    pull = -(x[None] - cosine[:, :, None] * x[:, None]) / sine[:, :, None]
    np.testing.assert_allclose(reverse, 2 * np.where(distinct[:, :, None], pull, 0).sum(1) / 32**2, atol=1e-12)
    np.testing.assert_allclose(forward, reverse, atol=1e-14)


def test_derivatives_of_distance_are_zero_at_coincidence_and_at_the_cut_locus():
    x = uniform(1)[0]

    @jax.jit
    @jax.vmap
    def derivatives(y):
        zero = [jax.jacfwd(SPHERE.distance)(x, y), jax.jacrev(SPHERE.distance)(x, y)]
        return zero, [jax.jacfwd(SPHERE.squared_distance)(x, y), jax.hessian(SPHERE.distance)(x, y)]

    x = jnp.asarray(x)
    zero, finite = derivatives(jnp.stack([x, -x]))
    assert all((a == 0).all() for a in zero) and all(jnp.isfinite(a).all() for a in finite)
    assert (finite[0][0] == 0).all()


def test_hessian_of_squared_distance_is_that_of_the_sphere():
    """Eigenvalues 2 along the geodesic and 2θ cot θ across it (the Jacobi fields of curvature 1), at θ = 0 as well."""
    x, u, w = jnp.eye(3)
    angles = jnp.array([0.0, 1e-9, 1e-3, 0.13, 0.15, 1.0, 2.5])

    @jax.jit
    @jax.vmap
    def derivatives(angle):
        y = jnp.cos(angle) * x + jnp.sin(angle) * u

        def squared(c):
            return SPHERE.squared_distance(SPHERE.exp(x, c[0] * u + c[1] * w), y)

        zero = jnp.zeros(2)
        return jax.grad(squared)(zero), jax.hessian(squared)(zero)

    gradient, hessian = derivatives(angles)
    across = np.where(angles > 0, 2 * angles / np.tan(np.where(angles > 0, angles, 1)), 2)
    np.testing.assert_allclose(gradient, np.stack([-2 * angles, 0 * angles], axis=1), atol=1e-14)
    np.testing.assert_allclose(hessian[:, 0, 0], 2, rtol=1e-11)
    np.testing.assert_allclose(hessian[:, 1, 1], across, rtol=1e-11)
    np.testing.assert_allclose(hessian[:, 0, 1], 0, atol=1e-11)


def test_log_and_exp_have_right_derivatives_at_zero_and_beyond():
    """d log(x, ·) inverts d exp(x, ·) on the tangent space, through the Taylor sums (θ < 0.14) and outside of them."""
    x, u, w = jnp.eye(3)
    angles = jnp.array([0.0, 1e-9, 0.1, 0.3, 2.0, 3.0])

    @jax.jit
    @jax.vmap
    def jacobians(angle):
        def there(c):
            return SPHERE.exp(x, c[0] * u + c[1] * w)

        c = jnp.stack([angle, jnp.zeros_like(angle)])
        return jax.jacfwd(there)(c), jax.jacrev(lambda c: SPHERE.log(x, there(c)))(c)

    there, back = jacobians(angles)
    tangent = np.asarray(jnp.stack([u, w], axis=1))
    np.testing.assert_allclose(back, np.broadcast_to(tangent, back.shape), atol=1e-12)
    np.testing.assert_allclose(there[:, 2, 1], np.sinc(angles / np.pi), atol=1e-14)
    np.testing.assert_allclose(there[:, 0, 0], -np.sin(angles), atol=1e-14)


def test_zero_vector_never_makes_nan():
    """One padded all-zero token among 8: it stays 0 and receives and causes no gradient."""
    x = uniform(8)
    x[5] = 0

    def loss(x):
        unit = SPHERE.retract(x)
        return jnp.sum(unit[:, None] * jnp.sin(unit[None])), unit

    (gradient, unit), forward = jax.jit(
        lambda x: (jax.grad(loss, has_aux=True)(x), jax.jacfwd(lambda x: loss(x)[0])(x))
    )(jnp.asarray(x))
    assert (unit[5] == 0).all() and jnp.isfinite(gradient).all()
    assert (gradient[5] == 0).all() and (gradient[:5] != 0).all()
    np.testing.assert_allclose(forward, gradient, atol=1e-14)
    zero = jnp.zeros((13, 3))
    assert (distance(zero, zero) == 0).all() and (log(zero, zero) == 0).all()


def test_log_of_an_antipodal_pair_is_refused():
    x = uniform(13)
    y = x[::-1].copy()
    y[2] = -x[2]
    x, y = jnp.asarray(x), jnp.asarray(y)
    with pytest.raises(ValueError, match=r"pair \(2,\).*antipodal"):
        SPHERE.log(x, y)
    with pytest.raises(eqx.EquinoxRuntimeError, match="antipodal"):
        log(x, y)
    assert jnp.isfinite(log(x, x)).all()


def test_uniform_is_uniform():
    x = SPHERE.uniform(jr.key(6), 20_000)
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-15
    x = np.asarray(x)
    # By Archimedes every coordinate is uniform on [-1, 1]: moments 0, 1/3, 1/5, with standard errors from the next.
    n = len(x)
    np.testing.assert_allclose(x.mean(0), 0, atol=4.5 * np.sqrt(1 / 3 / n))
    np.testing.assert_allclose(x.T @ x / n, np.eye(3) / 3, atol=4.5 * np.sqrt(4 / 45 / n))
    np.testing.assert_allclose((x**4).mean(0), 1 / 5, atol=4.5 * np.sqrt((1 / 9 - 1 / 25) / n))


def test_output_has_the_dtype_of_the_input_and_pairs_broadcast(dtype):
    x = jax.ShapeDtypeStruct((4, 1, 3), dtype)
    y = jax.ShapeDtypeStruct((1, 2, 3), dtype)
    vectors = [jax.eval_shape(method, x, y) for method in (SPHERE.project, SPHERE.exp, SPHERE.log)]
    numbers = [jax.eval_shape(method, x, y) for method in (SPHERE.distance, SPHERE.squared_distance)]
    single = [jax.eval_shape(SPHERE.retract, x), jax.eval_shape(SPHERE.defect, x)]
    shapes = [(4, 2, 3)] * 3 + [(4, 2)] * 2 + [(4, 1, 3), (4, 1)]
    assert [a.shape for a in vectors + numbers + single] == shapes
    assert {a.dtype.name for a in vectors + numbers + single} == {dtype}


@pytest.mark.parametrize("d", [0, 1, -3, True])
def test_dimension_must_be_an_integer_of_at_least_two(d):
    with pytest.raises(ValueError, match="d must be an integer"):
        Sphere(d)


def test_vectors_of_another_dimension_are_refused():
    with pytest.raises(ValueError, match=r"R\^3.*\(4, 2\)"):
        SPHERE.retract(jnp.ones((4, 2)))
    with pytest.raises(ValueError, match="n must be an integer"):
        SPHERE.uniform(jr.key(0), 0)
