"""Laws of one and two tokens, against sums over the modes of a field, and against one another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_flows import theory
from transformer_flows.geometry import Sphere
from transformer_flows.models import GaussianField, Monomials

KERNEL = theory.ActivationKernel(jnp.tanh, 4, 0.2, 0.1, 0.05)


def test_the_scalar_equation_is_that_of_two_tokens(key):
    """d⟨x, y⟩ by Itô's formula from the columns of the noise itself."""
    x = Sphere(4).uniform(key, 2)
    field = GaussianField(KERNEL, Monomials(9))
    columns = jnp.eye(field.like.shape[0] * 4).reshape(-1, *field.like.shape)
    moved = jax.lax.map(lambda dw: Sphere(4).project(x, field(x, dw)), columns)
    drift = field.ito_drift(x)
    by_products = jnp.sum(moved[:, 0] * moved[:, 1])
    wanted = by_products + jnp.dot(drift[0], x[1]) + jnp.dot(x[0], drift[1])
    martingale = moved[:, 0] @ x[1] + moved[:, 1] @ x[0]
    rho = jnp.dot(x[0], x[1])
    assert field.error < 1e-7  # what the modes leave out, times d − 1 and the like
    np.testing.assert_allclose(theory.pair_drift(KERNEL, rho), wanted, atol=float(8 * field.error))
    np.testing.assert_allclose(theory.pair_variance(KERNEL, rho), jnp.sum(martingale**2), atol=float(8 * field.error))


def test_one_cluster_is_a_fixed_point_whose_moments_grow_at_the_known_rates():
    np.testing.assert_allclose([theory.pair_drift(KERNEL, 1.0), theory.pair_variance(KERNEL, 1.0)], 0, atol=1e-15)
    # |δ|² is 2(1 − ρ): its mean grows at the slope of the drift
    slope = jax.grad(lambda rho: theory.pair_drift(KERNEL, rho))(1.0)
    np.testing.assert_allclose(slope, theory.pair_rate(KERNEL), rtol=1e-10)
    np.testing.assert_allclose(theory.moment_exponent(KERNEL, 2.0), theory.pair_rate(KERNEL), rtol=1e-12)
    at_zero = jax.grad(lambda p: theory.moment_exponent(KERNEL, p))(0.0)
    np.testing.assert_allclose(at_zero, theory.lyapunov_exponents(KERNEL)[0], rtol=1e-12)


def test_correlation_is_the_exponential_of_the_ito_drift():
    rate = jax.grad(lambda t: theory.correlation(KERNEL, t))(0.0)
    field = GaussianField(KERNEL, Monomials(9))
    np.testing.assert_allclose(rate, field.ito_drift(jnp.eye(1, 4))[0, 0], atol=float(2 * field.error))
    np.testing.assert_allclose(theory.correlation(KERNEL, jnp.array([1.0, 2.0])), jnp.exp(rate * jnp.array([1, 2])))


def test_arguments_outside_of_where_the_laws_hold_are_refused():
    for call, words in [
        (
            lambda: theory.correlation(KERNEL, jnp.array([1.0, -0.5])),
            r"t must be .* at least 0; got -0\.5 at index \(1,\)",
        ),
        (lambda: theory.pair_drift(KERNEL, 2.0), r"rho must lie in \[-1, 1\]; got 2"),
        (lambda: theory.pair_variance(KERNEL, -1.2), r"rho must lie in \[-1, 1\]; got -1\.2"),
        (lambda: theory.value_noise_exponent_near_coincidence(-1.0, 3), "strength must be .* at least 0; got -1"),
        (lambda: theory.value_noise_exponent_near_antipodes(-1.0, 1.0, 3), "strength must be .* at least 0"),
        (lambda: theory.value_noise_exponent_near_antipodes(1.0, 1.0, 1), "d must be finite and at least 2; got 1"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
