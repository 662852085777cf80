"""Gaussians: factors of covariances, their derivatives, and what is refused."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl


def matrix(seed, d, r=None):
    factor = np.random.default_rng(seed).normal(size=(d, r or d))
    return factor @ factor.T


@pytest.mark.parametrize("r", [1, 3, 5])
def test_the_factor_gives_the_covariance_back(r, dtype):
    cov = matrix(0, 5, r).astype(dtype)
    g = tfl.Gaussian(np.zeros(5, dtype), cov)
    assert g.factor.shape == (5, 5) and g.factor.dtype == g.cov.dtype == dtype
    assert g.rank == r and (np.asarray(g.factor)[:, r:] == 0).all()
    np.testing.assert_allclose(g.cov, cov, atol=1e-5 if dtype == "float32" else 1e-13)
    assert (g.cov == g.cov.T).all()


def test_a_covariance_off_by_rounding_is_accepted():
    """Fault 26: a singular covariance whose least eigenvalue is -eps."""
    c = np.array([[-100.0, 1.0]])
    g = tfl.Gaussian(np.zeros(2), c.T @ c - 1e-13 * np.eye(2))
    assert g.rank == 1


@pytest.mark.parametrize("cov", [np.eye(3), np.diag([1.0, 1.0, 2.0]), matrix(1, 3)], ids=["eye", "double", "general"])
def test_derivatives_of_the_factor(cov):
    """Fault 22: what depends on L Lᵀ alone has the derivatives of cov itself, at repeated eigenvalues too."""
    mean = jnp.zeros(3)
    weight = jnp.asarray(matrix(2, 3))

    def through(s):
        return jnp.exp(jnp.sum(tfl.Gaussian(mean, (s + s.T) / 2).cov * weight) / 10)

    def direct(s):
        return jnp.exp(jnp.sum((s + s.T) / 2 * weight) / 10)

    cov = jnp.asarray(cov)
    np.testing.assert_allclose(jax.grad(through)(cov), jax.grad(direct)(cov), atol=1e-12)
    np.testing.assert_allclose(jax.hessian(through)(cov), jax.hessian(direct)(cov), atol=1e-11)


def test_the_derivative_of_the_factor_is_half_of_dcov_by_its_inverse():
    """dL = ½ dΣ L⁻ᵀ at full rank; at a singular Σ a change X Lᵀ + L Xᵀ, which keeps the rank, is met by dL."""
    cov, change = matrix(1, 3), matrix(2, 3)
    factor, moved = jax.jvp(lambda s: tfl.Gaussian(jnp.zeros(3), s).factor, (jnp.asarray(cov),), (jnp.asarray(change),))
    np.testing.assert_allclose(moved, change @ np.linalg.inv(factor).T / 2, atol=1e-12)
    low = np.random.default_rng(3).normal(size=(4, 2))
    x = np.random.default_rng(4).normal(size=(4, 2))
    change = x @ low.T + low @ x.T
    g, dg = jax.jvp(lambda s: tfl.Gaussian(jnp.zeros(4), s), (jnp.asarray(low @ low.T),), (jnp.asarray(change),))
    np.testing.assert_allclose(dg.factor @ g.factor.T + g.factor @ dg.factor.T, change, atol=1e-12)


def test_samples_and_tokens_have_the_moments():
    g = tfl.Gaussian(np.array([1.0, -2.0]), matrix(5, 2))
    x = g.sample(jr.key(0), 100_000)
    back = tfl.Gaussian.of_tokens(x)
    np.testing.assert_allclose(back.cov, np.cov(np.asarray(x).T, bias=True), rtol=1e-10)
    error = 5 * np.sqrt(np.diag(g.cov) / 100_000)
    assert (np.abs(back.mean - g.mean) < error).all()
    np.testing.assert_allclose(back.cov, g.cov, atol=0.05 * float(g.cov.max()))


@pytest.mark.parametrize(
    "arguments, word",
    [
        ({"mean": np.zeros(2)}, "either"),
        ({"mean": np.zeros(2), "cov": np.eye(3)}, "shape"),
        ({"mean": np.zeros(2), "cov": np.ones((2, 3))}, "cov"),
        ({"mean": np.zeros(2), "cov": np.diag([1.0, -1.0])}, "semi-definite"),
        ({"mean": np.zeros(2), "cov": np.array([[1.0, 0.5], [0.0, 1.0]])}, "symmetric"),
        ({"mean": np.array([0.0, np.nan]), "cov": np.eye(2)}, "mean"),
        ({"mean": np.zeros(2), "factor": np.full((2, 1), np.inf)}, "factor"),
    ],
)
def test_no_gaussians(arguments, word):
    with pytest.raises(ValueError, match=word):
        tfl.Gaussian(**arguments)
