"""Order against noise of every token's own: the root against SciPy, its derivative, growth rates by quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from transformer_flows import theory

KAPPA = np.array([1.0, 2.0, 2.0001, 2.1, 3.0, 4.0, 9.0, 50.0, 1e4])


@pytest.mark.parametrize("d", [2, 3, 8])
def test_the_order_solves_its_equation(d):
    """r = I_{d/2}(κr)/I_{d/2−1}(κr), the root above 0 where there is one."""

    def root(kappa):
        excess = lambda r: scipy.special.ive(d / 2, kappa * r) / scipy.special.ive(d / 2 - 1, kappa * r) - r
        return scipy.optimize.brentq(excess, 1e-4, 1, xtol=1e-15) if kappa > d else 0.0

    np.testing.assert_allclose(theory.stationary_order(KAPPA, d), [root(kappa) for kappa in KAPPA], atol=1e-11)


def test_the_order_is_that_of_the_density():
    """On S² the mean of e^{κrx} over x in [−1, 1], by quadrature; near κ = d the order is √((d+2)(1 − d/κ)/d)."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    r = float(theory.stationary_order(5.0, 3))
    density = weights * np.exp(5 * r * nodes)
    np.testing.assert_allclose(density @ nodes / density.sum(), r, rtol=1e-12)
    for d in (2, 5):
        order = theory.stationary_order(d * (1 + 1e-6), d)
        np.testing.assert_allclose(order, np.sqrt((d + 2) / d * 1e-6), rtol=1e-4)


def test_the_order_can_be_differentiated():
    order = jax.jit(lambda kappa: theory.stationary_order(kappa, 2))
    slope = jax.jit(jax.grad(order))
    np.testing.assert_allclose(slope(4.0), (order(4 + 1e-5) - order(4 - 1e-5)) / 2e-5, rtol=1e-7)
    assert slope(1.5) == 0 and jnp.isfinite(slope(2.0))
    single = order(jnp.float32(4.0))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, order(4.0), rtol=1e-5)


def test_growth_with_noise_by_quadrature():
    """On the circle the density 1 + ε cos lθ moves by −(ρv)' + ρ''/κ, v of the softmax attention of that density."""
    theta = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    beta, kappa, l, epsilon = 1.7, 3.0, 2, 1e-6
    density = 1 + epsilon * np.cos(l * theta)
    kernel = np.exp(beta * np.cos(theta[:, None] - theta)) * density
    velocity = (kernel * np.sin(theta - theta[:, None])).sum(axis=1) / kernel.sum(axis=1)
    # the mode of −(ρv)' by parts
    flux = (density * velocity * -l * np.sin(l * theta)).mean() * 2 / epsilon
    np.testing.assert_allclose(theory.noisy_growth_rate(kappa, beta, l, 2), flux - l**2 / kappa, atol=1e-5)
    np.testing.assert_allclose(theory.noisy_growth_rate(3.0, 0.0, np.arange(4), 3), [0, 0, -2, -4], atol=1e-14)
    with pytest.raises(ValueError, match="kappa must be positive"):
        theory.noisy_growth_rate(0.0, 1.0, 1, 2)
