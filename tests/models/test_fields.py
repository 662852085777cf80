"""Random fields: factors of the covariance by four routes, their stated errors, and their Itô drifts."""

import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from transformer_flows.geometry import Sphere
from transformer_flows.models import (
    GaussianField,
    Gram,
    Harmonics,
    IdiosyncraticField,
    Monomials,
    RandomFeatures,
)
from transformer_flows.theory import ActivationKernel


def kernel(d, activation=jax.nn.relu):
    return ActivationKernel(activation, d, 1 / d, 0.1, 0.05)


def gap(field, x):
    factor = field.prepared().factor(x)
    return float(jnp.abs(factor @ factor.T - field.kernel(x @ x.T)).max()), factor


@pytest.mark.parametrize(
    "d, realisation", [(2, None), (2, Harmonics(5)), (3, Harmonics(7)), (5, Monomials(3)), (8, None)]
)
def test_modes_have_the_kernel_for_their_covariance_up_to_the_stated_error(d, realisation, key):
    field = GaussianField(kernel(d), realisation)
    error, factor = gap(field, Sphere(d).uniform(key, 6))
    assert factor.shape == (6, field.like.shape[0]) and field.like.shape[1] == d
    # all terms are positive, so the error is largest at equal tokens, and there it is what is cut off
    np.testing.assert_allclose(error, float(field.error), rtol=1e-7, atol=1e-14)
    assert 1e-9 < error < 0.05 * float(field.kernel(1.0))


@pytest.mark.parametrize("d", [2, 3, 4, 8])
def test_the_modes_that_are_taken_by_default_are_many_and_still_few(d):
    field = GaussianField(kernel(d))
    assert field.error < 5e-5 * field.kernel(1.0) or d > 3
    modes, more = field.like.shape[0], math.comb(d + field.realisation.degree + 1, d)
    assert modes <= 1000 and (d <= 3 or more > 1000)


def test_more_modes_err_less_and_the_laws_do_not_depend_on_rotations(key):
    few, many = (GaussianField(kernel(4), Monomials(degree)) for degree in (2, 6))
    assert many.error < 0.3 * few.error
    x = Sphere(4).uniform(key, 5)
    turn = jnp.linalg.qr(jr.normal(key, (4, 4)))[0]
    before, after = few.factor(x), few.factor(x @ turn.T)
    np.testing.assert_allclose(before @ before.T, after @ after.T, atol=1e-14)


def test_random_features_are_right_on_average(key):
    one, other = (GaussianField(kernel(6), RandomFeatures(k, 6, 4000)) for k in jr.split(key))
    x = Sphere(6).uniform(key, 4)
    for field in (one, other):
        assert gap(field, x)[0] < 4 * field.error
    assert 0.5 < float(one.error / other.error) < 2
    assert not jnp.array_equal(one.factor(x), other.factor(x))


def test_gram_factor_is_a_cholesky_factor_and_survives_coincident_tokens(key, dtype):
    x = Sphere(3).uniform(key, 6).astype(dtype)
    field = GaussianField(kernel(3, jnp.tanh), Gram(6))
    eps = jnp.finfo(dtype).eps
    error, factor = gap(field, x)
    assert error < 20 * eps and factor.dtype == dtype
    # the first pivot is the first token; NumPy's factor is that of the order of the pivots
    order = np.argsort([np.flatnonzero(row).max(initial=0) for row in np.asarray(factor)])
    gram = np.asarray(field.kernel(x @ x.T), float)[np.ix_(order, order)]
    np.testing.assert_allclose(np.asarray(factor)[order], np.linalg.cholesky(gram), atol=2e3 * eps)
    close = x.at[1].set(x[0]).at[4].set(x[0]).at[5].set(Sphere(3).retract(x[3] + 1e-3 * eps))
    error, factor = gap(field, close)
    assert error < 100 * eps and bool(jnp.isfinite(factor).all())
    assert (factor[1] == factor[0]).all() and (factor[4] == factor[0]).all()
    one_cluster = jnp.broadcast_to(x[:1], x.shape)
    assert int(jnp.linalg.matrix_rank(field.factor(one_cluster))) == 1


def test_gram_factor_does_not_see_how_tokens_were_rounded(key):
    """Lengths off by the rounding of single precision: every token has the variance k(1) of a unit vector."""
    x = Sphere(3).uniform(key, 4).astype("float32").astype("float64")
    assert 1e-9 < jnp.abs(jnp.sum(x * x, axis=1) - 1).max() < 1e-6
    field = GaussianField(kernel(3), Gram(4))
    factor = field.factor(x)
    np.testing.assert_allclose(jnp.sum(factor**2, axis=1), field.kernel(1.0), rtol=1e-12)


def test_gram_factor_of_antipodal_tokens_of_an_odd_field(key):
    x = Sphere(3).uniform(key, 3)
    field = GaussianField(ActivationKernel(jnp.tanh, 3, 1 / 3), Gram(6))
    factor = field.factor(jnp.concatenate([x, -x]))
    np.testing.assert_allclose(factor[3:], -factor[:3], atol=1e-12)


def test_equal_tokens_are_displaced_equally_to_the_last_bit(key):
    x = Sphere(5).uniform(key, 7)
    x = x.at[6].set(x[2])
    for realisation in (Monomials(3), RandomFeatures(key, 5, 33), Gram(7)):
        field = GaussianField(kernel(5), realisation)
        moved = jax.jit(lambda x, field=field: field(x, jr.normal(key, field.like.shape)))(x)
        assert (moved[6] == moved[2]).all() and not (moved[5] == moved[2]).any()


def stratonovich_correction(field, x):
    """½ Σ D(σ_j)σ_j over the columns of σ(x) = P F(x), by differentiation of the displacement itself."""
    columns = jnp.eye(field.like.shape[0] * x.shape[1]).reshape(-1, *field.like.shape)

    def displacement(x, dw):
        return Sphere(x.shape[1]).project(x, field(x, dw))

    def one(dw):
        return jax.jvp(lambda x: displacement(x, dw), (x,), (displacement(x, dw),))[1]

    return 0.5 * jnp.sum(jax.lax.map(one, columns), axis=0)


@pytest.mark.parametrize("d, realisation", [(2, Harmonics(4)), (3, Harmonics(3)), (4, Monomials(2)), (4, "features")])
def test_ito_drift_is_the_derivative_of_the_noise_along_itself(d, realisation, key):
    x = Sphere(d).uniform(key, 2)
    realisation = RandomFeatures(key, d, 9) if realisation == "features" else realisation
    field = GaussianField(kernel(d, jnp.tanh), realisation)
    np.testing.assert_allclose(field.ito_drift(x), stratonovich_correction(field, x), atol=1e-13)
    if field.realisation.error(field.kernel) < 1e-3:
        np.testing.assert_allclose(field.ito_drift(x), -0.5 * (d - 1) * field.kernel(1.0) * x, atol=2e-3)


def test_own_noise_and_sums(key):
    x = Sphere(3).uniform(key, 4)
    own = IdiosyncraticField(4, 3, kappa=0.5)
    dw = jr.normal(key, (4, 3))
    np.testing.assert_allclose(own(x, dw), 2 * dw)
    np.testing.assert_allclose(own.ito_drift(x), -4 * x)
    common = GaussianField(kernel(3), Harmonics(2))
    both = common + own
    of_common = jr.normal(key, common.like.shape)
    assert both.like == (common.like, own.like) and both.depends_smoothly
    np.testing.assert_allclose(both(x, (of_common, dw)), common(x, of_common) + own(x, dw))
    np.testing.assert_allclose(both.ito_drift(x), common.ito_drift(x) + own.ito_drift(x))
    assert not (GaussianField(kernel(3), Gram(4)) + own).depends_smoothly


def test_derivatives_in_the_scales_reach_the_factor():
    x = Sphere(3).uniform(jr.key(1), 3)

    def total(variance, prepared):
        field = GaussianField(ActivationKernel(jnp.tanh, 3, variance, 0.1), Harmonics(3))
        factor = (field.prepared() if prepared else field).factor(x)
        return jnp.sum((factor @ factor.T) ** 2)

    slope = jax.grad(total)(0.4, True)
    np.testing.assert_allclose(slope, jax.grad(total)(0.4, False))
    np.testing.assert_allclose(slope, (total(0.4 + 1e-5, True) - total(0.4 - 1e-5, True)) / 2e-5, rtol=1e-8)


def test_coefficients_that_are_rounding_are_none(dtype):
    """The even ones of an odd kernel: their roots would be noise of √eps in the factor, another for every compiler."""
    odd = ActivationKernel(jnp.tanh, 3, *jnp.array([0.3, 0.0, 0.0], dtype))
    coefficients = Harmonics(6).coefficients(odd)
    assert coefficients.dtype == dtype and not coefficients[::2].any() and (coefficients[1::2] > 0).all()
    moved = GaussianField(odd, Harmonics(6)).factor(jnp.eye(3, dtype=dtype))
    np.testing.assert_array_equal(moved[:, jnp.array([0, 4, 5, 6, 7, 8])], 0)


def test_wrong_arguments_are_refused(key):
    with pytest.raises(ValueError, match=r"Harmonics are for d = 2 and 3.*d = 5"):
        GaussianField(kernel(5), Harmonics(4))
    with pytest.raises(ValueError, match=r"R\^64.*2145 modes"):
        GaussianField(kernel(64))
    with pytest.raises(ValueError, match="features are for d = 4"):
        GaussianField(kernel(5), RandomFeatures(key, 4, 10))
    with pytest.raises(ValueError, match="factor is for 4 tokens; got 3"):
        GaussianField(kernel(3), Gram(4)).factor(Sphere(3).uniform(key, 3))
    with pytest.raises(ValueError, match="degree must be at most 24"):
        GaussianField(kernel(2), Monomials(25)).factor(Sphere(2).uniform(key, 3))
    with pytest.raises(ValueError, match="kappa must be one positive number; got -1"):
        IdiosyncraticField(3, 3, kappa=-1.0)
    with pytest.raises(ValueError, match=r"\(4, 3\).*\(5, 3\)"):
        IdiosyncraticField(4, 3, kappa=1.0)(Sphere(3).uniform(key, 5), jnp.zeros((5, 3)))
    modes = GaussianField(kernel(3), Harmonics(2))
    for field in (IdiosyncraticField(4, 3, kappa=1.0), modes):
        with pytest.raises(ValueError, match=r"takes increments of shape .*; got \(1, 3\)"):
            field(Sphere(3).uniform(key, 4), jnp.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"field is of tokens of shape \(n, 3\); got \(4, 2\)"):
        modes(Sphere(2).uniform(key, 4), jnp.zeros((9, 2)))
    with pytest.raises(ValueError, match=r"R\^3 and in R\^2 have no sum"):
        IdiosyncraticField(4, 3, kappa=1.0) + IdiosyncraticField(4, 2, kappa=1.0)
    for make in (lambda: Harmonics(0), lambda: Monomials(True), lambda: Gram(0), lambda: RandomFeatures(key, 3, 0)):
        with pytest.raises(ValueError, match="must be an integer of at least"):
            make()
    with pytest.raises(ValueError, match="tolerance must be between 0 and 1"):
        Gram(3, tolerance=0.0)
