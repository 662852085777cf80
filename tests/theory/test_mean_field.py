"""Eigenvalues of the kernel and growth rates against Bessel functions and the Funk–Hecke integral."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from transformer_flows import theory

BETA = np.array([1e-6, 0.5, 4.0, 60.0, 300.0])[:, None]
L = np.arange(1, 24)[None]


@pytest.mark.parametrize("d", [2, 3, 5])
def test_rates_are_bessel_functions(d):
    """λ_l = Γ(d/2) (2/β)^{d/2-1} I_{l+d/2-1}(β), compared with the factor e^{-β} where it would overflow."""
    order = d / 2 - 1
    scaled = lambda l: scipy.special.gamma(d / 2) * (2 / BETA) ** order * scipy.special.ive(l + order, BETA)
    seen = scaled(L) > 1e-280
    rates = L * (L + d - 2) * scaled(L) / BETA
    found = theory.growth_rate_unnormalised(BETA, L, d) * np.exp(-BETA)
    np.testing.assert_allclose(found[seen], rates[seen], rtol=1e-11)
    np.testing.assert_allclose(theory.growth_rate(BETA, L, d)[seen], (rates / scaled(0))[seen], rtol=1e-11)
    np.testing.assert_allclose(theory.kernel_eigenvalue(BETA, 0, d) * np.exp(-BETA), scaled(0), rtol=1e-11)


def test_eigenvalues_are_the_integral_of_funk_and_hecke():
    """On S² λ_l = ½∫e^{βs}P_l(s)ds; on the circle the polynomials are Chebyshev's and λ_k = I_k(β)."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for l in range(5):
        integral = 0.5 * weights @ (np.exp(-2.5 * nodes) * scipy.special.eval_legendre(l, nodes))
        np.testing.assert_allclose(theory.kernel_eigenvalue(-2.5, l, 3), integral, atol=1e-14)
    np.testing.assert_allclose(
        theory.kernel_eigenvalue(2.5, np.arange(5), 2), scipy.special.iv(np.arange(5), 2.5), rtol=1e-13
    )


def test_limits_at_zero_beta_and_derivatives():
    """At β = 0 only degree 1 grows, at the rate (d-1)/d, for both kinds; and rates can be differentiated there."""
    for rate in (theory.growth_rate, theory.growth_rate_unnormalised):
        np.testing.assert_allclose(rate(0.0, np.arange(4), 3), [0, 2 / 3, 0, 0], atol=1e-15)
        np.testing.assert_allclose(rate(0.0, 1, 2, value=-1.0), -0.5, rtol=1e-14)
        step = 1e-6
        for beta in (0.0, 1.5):
            difference = (rate(beta + step, 2, 3) - rate(beta - step, 2, 3)) / (2 * step)
            np.testing.assert_allclose(jax.grad(rate)(beta, 2, 3), difference, atol=1e-9)


def test_single_precision():
    rate = theory.growth_rate(jnp.float32(4.0), np.arange(6), 3)
    assert rate.dtype == jnp.float32
    np.testing.assert_allclose(rate, theory.growth_rate(4.0, np.arange(6), 3), rtol=1e-5)


@pytest.mark.parametrize("d", [2, 3, 5, 128])
def test_large_beta_and_high_degrees(d):
    """Against SciPy where it neither underflows nor divides by 0; no NaN anywhere, and softmax rates are finite."""
    beta = np.array([0.0, 1e-8, 1.0, -1.0, 1e3, -1e3, 1e5, -1e5])[:, None]
    l = np.array([0, 1, 2, 3, 10, 30, 100, 300, 1000])[None]
    rate = theory.growth_rate(beta, l, d)
    with np.errstate(divide="ignore", invalid="ignore"):
        over = scipy.special.ive(l + d / 2 - 1, np.abs(beta)) / scipy.special.ive(d / 2 - 1, np.abs(beta))
        expected = l * (l + d - 2) / beta * np.sign(beta) ** l * over
    seen = (over > 1e-250) & np.isfinite(expected)
    assert seen.sum() > 36
    np.testing.assert_allclose(rate[seen], expected[seen], rtol=1e-10)
    assert np.isfinite(rate).all() and np.abs(rate[~seen]).max() < 1
    for law in (theory.kernel_eigenvalue, theory.growth_rate_unnormalised):
        assert not np.isnan(law(beta, l, d)).any()
    single = theory.growth_rate(beta.astype("float32"), l, d)
    assert single.dtype == jnp.float32
    # the rounding of logarithms of several thousand
    np.testing.assert_allclose(single, rate, rtol=2e-3, atol=1e-30)


@pytest.mark.parametrize("beta", [-1e3, 1e5])
def test_derivatives_at_large_beta(beta):
    """I_k' = (I_{k-1} + I_{k+1})/2."""
    k = np.array([1, 100])
    rate = lambda beta: theory.growth_rate(beta, k, 2)
    i = lambda k: scipy.special.ive(k, abs(beta))
    slope = lambda k: np.sign(beta) * (i(k - 1) + i(k + 1)) / (2 * i(k))
    expected = rate(beta) * (slope(k) - slope(0) - 1 / beta)
    reverse = jax.jit(jax.jacrev(rate))(beta)
    np.testing.assert_allclose(reverse, expected, rtol=1e-6)  # what the differences of the slopes keep
    np.testing.assert_allclose(jax.jit(jax.jacfwd(rate))(beta), reverse, rtol=1e-9)


def test_second_derivatives_at_zero():
    """On the circle the rate of mode 1 is ½ - β²/16 + O(β⁴)."""
    rate = lambda beta: theory.growth_rate(beta, np.array([1, 100]), 2)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(jax.jacrev(rate)))(0.0), [-1 / 8, 0], atol=1e-13)
