"""The kernel of a random MLP: closed forms, two-dimensional quadrature, Monte Carlo of the MLP itself, rates."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
from jax.scipy.special import erf

import transformer_flows as tfl
from transformer_flows.theory import (
    ActivationKernel,
    dissipation_rate,
    energy_decay,
    is_dissipative,
    lyapunov_exponents,
    pair_rate,
    smallest_bias,
)

RHO = jnp.array([-1.0, -0.7, 0.0, 0.4, 0.99, 1.0])
# φ, d, σ, and k(1), k'(1), λ_1, λ̄ with variances 1/d, σ², σ², as printed in the specification
TABLE = [
    (jax.nn.relu, 5, 0.1, 0.115, 0.1, -0.13, 0.17),
    (jax.nn.relu, 64, 0.1, 0.0228125, 0.0078125, -0.480313, -0.899375),
    (jax.nn.sigmoid, 5, 0.0, 0.261401, 0.0114299, -0.511371, -0.477082),
    (jax.nn.sigmoid, 64, 0.1, 0.261581, 0.000964323, -8.2104, -15.8957),
    (jnp.tanh, 5, 0.1, 0.162681, 0.149228, -0.176134, 0.271549),
    (jnp.tanh, 64, 0.0, 0.0151572, 0.0151617, -0.0150195, 0.0305987),
    (jax.nn.silu, 5, 0.0, 0.056452, 0.0583694, -0.0545345, 0.120574),
    (jax.nn.silu, 64, 0.1, 0.0165268, 0.00400386, -0.398477, -0.755892),
]


def by_quadrature(phi, v, r):
    """E[φ(g) φ(g')] by a tensor Gauss–Hermite rule, independent of any expansion."""
    nodes, weights = scipy.special.roots_hermitenorm(120)
    x, y = np.meshgrid(nodes, nodes)
    values = np.asarray(phi(np.sqrt(v) * x)) * np.asarray(phi(np.sqrt(v) * (r * x + np.sqrt(1 - r**2) * y)))
    return weights @ values @ weights / (2 * np.pi)


@pytest.mark.parametrize(("phi", "d", "sigma", "k", "slope", "first", "pair"), TABLE)
def test_table_of_the_paper_s_grid(phi, d, sigma, k, slope, first, pair):
    kernel = ActivationKernel(phi, d, 1 / d, sigma**2, sigma**2)
    found = [kernel(1.0), kernel.derivative(1.0), lyapunov_exponents(kernel)[0], pair_rate(kernel)]
    np.testing.assert_allclose(found, [k, slope, first, pair], rtol=6e-6)


@pytest.mark.parametrize("phi", [jnp.tanh, jax.nn.silu, jnp.sin, jnp.cos, erf, jax.nn.identity])
def test_kernel_and_slope_equal_quadrature(phi):
    kernel = ActivationKernel(phi, 3, 0.8, 0.3, 0.2)
    slope = jax.vmap(jax.vmap(jax.grad(phi)))
    for rho in (-0.7, 0.0, 0.4, 1.0):
        r = (0.8 * rho + 0.3) / 1.1
        np.testing.assert_allclose(kernel(rho), by_quadrature(phi, 1.1, r) + 0.2, rtol=1e-9)
        np.testing.assert_allclose(kernel.derivative(rho), 0.8 * by_quadrature(slope, 1.1, r), rtol=1e-8)


def test_closed_forms_equal_the_expansion():
    """A function that does the same but is another one is expanded."""
    for phi in (jnp.sin, jnp.cos, erf, jax.nn.identity):
        closed, expanded = (ActivationKernel(f, 3, 0.8, 0.3, 0.2) for f in (phi, lambda x, phi=phi: phi(x)))
        assert closed.error == 0 < expanded.error < 1e-12
        np.testing.assert_allclose(closed(RHO), expanded(RHO), atol=1e-13)
        np.testing.assert_allclose(closed.derivative(RHO), expanded.derivative(RHO), atol=1e-13)


def test_a_kink_is_said_to_be_resolved_less_and_the_bound_holds():
    closed, expanded = (ActivationKernel(f, 3, 0.8, 0.3, 0.0) for f in (jax.nn.relu, lambda x: jax.nn.relu(x)))
    assert 1e-8 < expanded.error < 1e-3
    assert np.abs(closed(RHO) - expanded(RHO)).max() <= expanded.error


@pytest.mark.parametrize("variance", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.filterwarnings("ignore:the kernel of tanh")
def test_steep_activations_are_resolved_at_equal_tokens(variance, dtype):
    """k(1) = E tanh² and k'(1) = σ_u² E sech⁴, by adaptive quadrature on the scale at which they change."""
    kernel = ActivationKernel(jnp.tanh, 3, *jnp.array([variance, 0.0, 0.0], dtype))
    scale = np.sqrt(variance)
    ends = np.concatenate([[0.0], np.geomspace(0.1, 12 * scale, 30)]) / scale

    def expectation(f):
        density = lambda z: 2 * f(scale * z) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        return sum(scipy.integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(ends))

    rtol = {"float32": 2e-6, "float64": 1e-13}[dtype]
    one = jnp.ones((), dtype)
    np.testing.assert_allclose(kernel(one), expectation(lambda x: np.tanh(x) ** 2), rtol=rtol)
    slope = expectation(lambda x: np.cosh(min(x, 300.0)) ** -4.0)
    np.testing.assert_allclose(kernel.derivative(one), variance * slope, rtol=rtol)
    assert kernel(-one) == -kernel(one)
    # in between it says how far off it is
    assert kernel.error >= 1e-3 * kernel(one) or variance < 1e2


def test_steep_activations_are_as_wrong_as_they_say():
    """erf of slope 30 has a closed form, that of one with a variance that is 900 times as large."""
    closed = ActivationKernel(erf, 3, 180.0, 45.0, 0.2)
    with pytest.warns(UserWarning, match=r"kernel of <lambda> at the variance 0\.25 is known to 0\.006 of k\(1\) only"):
        steep = ActivationKernel(lambda x: erf(30 * x), 3, 0.2, 0.05, 0.2)
    rho = jnp.concatenate([1 - jnp.geomspace(1e-6, 1.0, 50), jnp.array([-1.0, 1.0])])
    off = jnp.abs(steep(rho) - closed(rho))
    assert 1e-2 * steep.error < off.max() <= steep.error
    np.testing.assert_allclose(steep(rho[-2:]), closed(rho[-2:]), rtol=1e-12)
    off = jnp.abs(steep.derivative(rho) - closed.derivative(rho))
    assert 1e-2 * steep.derivative_error < off.max() <= steep.derivative_error
    np.testing.assert_allclose(steep.derivative(rho[-1]), closed.derivative(rho[-1]), rtol=1e-12)


@pytest.mark.parametrize("name", ["leaky_relu", "abs", "elu"])
def test_a_kink_at_zero_does_not_spoil_the_rates(name):
    """k'(1) was off by 1.6 % for leaky_relu, at the node in its kink."""
    phi = getattr(jax.nn, name, jnp.abs)
    kernel = ActivationKernel(phi, 3, 0.8, 0.3, 0.2)
    slopes = {  # of both sides at √1.1 z; all are 0 at 0
        "leaky_relu": (lambda x: x, lambda x: 1.0, lambda x: 0.01 * x, lambda x: 0.01),
        "abs": (lambda x: x, lambda x: 1.0, lambda x: x, lambda x: 1.0),
        "elu": (lambda x: x, lambda x: 1.0, lambda x: np.expm1(x), lambda x: np.exp(x)),
    }[name]

    def expectation(right, left):
        density = lambda z, f: f(np.sqrt(1.1) * z) ** 2 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        halves = scipy.integrate.quad(density, 0, 12, (right,)), scipy.integrate.quad(density, -12, 0, (left,))
        return halves[0][0] + halves[1][0]

    np.testing.assert_allclose(kernel(1.0), expectation(slopes[0], slopes[2]) + 0.2, rtol=1e-10)
    np.testing.assert_allclose(kernel.derivative(1.0), 0.8 * expectation(slopes[1], slopes[3]), rtol=1e-10)


@pytest.mark.filterwarnings("ignore:the kernel of hard_tanh")
@pytest.mark.parametrize(("phi", "kink"), [(jax.nn.hard_tanh, 1.0), (jax.nn.hard_swish, 3.0)])
def test_kinks_elsewhere_are_as_wrong_as_they_say(phi, kink):
    """The rule itself errs there, at equal tokens too, and by more than the terms that are left out."""
    for variance in (1.0, 4.0):
        kernel, scale = ActivationKernel(phi, 3, variance), np.sqrt(variance)
        ends = [-12.0, -kink / scale, kink / scale, 12.0]
        density = lambda z, scale=scale: float(phi(scale * z)) ** 2 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        exact = sum(scipy.integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(ends))
        assert 0.02 * kernel.error < abs(kernel(1.0) - exact) <= kernel.error


def test_scales_of_steep_activations_can_be_differentiated_under_jit():
    """Where the variance is traced nothing is warned of, and no number of nodes depends on it."""
    rate = jax.jit(lambda weight: pair_rate(ActivationKernel(jnp.tanh, 5, weight, 0.1, 0.1)))
    slope = jax.jit(jax.grad(rate))(1e4)
    np.testing.assert_allclose(slope, (rate(1e4 + 1.0) - rate(1e4 - 1.0)) / 2, rtol=1e-6)


def test_relu_is_the_integral_over_a_wedge():
    """E[relu(g)relu(g')] as an angle integral of the orthant: ∫ cos a cos(a − θ) da over the common half plane."""
    for r in (-0.9, 0.2, 0.8):
        theta = np.arccos(r)
        wedge = scipy.integrate.quad(lambda a, t=theta: np.cos(a) * np.cos(a - t), theta - np.pi / 2, np.pi / 2)[0]
        np.testing.assert_allclose(ActivationKernel(jax.nn.relu, 3, 1.0)(r), wedge / np.pi, rtol=1e-12)


@pytest.mark.parametrize("phi", [jax.nn.relu, jnp.tanh])
def test_derivatives_in_cosine_and_variances(phi):
    def k(parameters):
        weight, hidden, output, rho = parameters
        return ActivationKernel(phi, 3, weight, hidden, output)(rho)

    at = jnp.array([0.8, 0.3, 0.2, 0.4])
    gradient = jax.jit(jax.grad(k))(at)
    steps = 1e-5 * jnp.eye(4)
    np.testing.assert_allclose(gradient, [(k(at + h) - k(at - h)) / 2e-5 for h in steps], rtol=1e-7)
    np.testing.assert_allclose(gradient[3], ActivationKernel(phi, 3, 0.8, 0.3, 0.2).derivative(0.4), rtol=1e-10)
    assert np.isfinite(jax.grad(k)(at.at[3].set(1.0))).all()


def test_rates_can_be_differentiated_in_reverse():
    """At ρ = 1 the slope of the ReLU kernel's derivative is infinite, and of no matter."""
    rate = lambda weight: pair_rate(ActivationKernel(jax.nn.relu, 6, weight, 0.1, 0.1))
    np.testing.assert_allclose(jax.grad(rate)(0.2), (rate(0.2 + 1e-6) - rate(0.2 - 1e-6)) / 2e-6, rtol=1e-7)
    decay = lambda weight: dissipation_rate(ActivationKernel(jax.nn.relu, 6, weight, 0.1, 0.1), 1.0)
    np.testing.assert_allclose(jax.grad(decay)(0.2), (decay(0.2 + 1e-6) - decay(0.2 - 1e-6)) / 2e-6, rtol=1e-4)


def test_large_variances_do_not_overflow_the_closed_forms():
    assert ActivationKernel(jnp.sin, 3, 1e3)(1.0) == ActivationKernel(jnp.cos, 3, 1e3)(1.0) == 0.5


@pytest.mark.parametrize("d", [2, 3, 5])
def test_gegenbauer_coefficients_rebuild_the_kernel(d):
    kernel = ActivationKernel(jnp.tanh, d, 1.0, 0.2, 0.1)
    c = kernel.gegenbauer(30)
    harmonics = scipy.special.comb(30 + d - 1, d - 1) + scipy.special.comb(29 + d - 1, d - 1)  # up to degree 30
    rounding = np.finfo(float).eps * harmonics
    assert (c > -rounding).all()
    np.testing.assert_allclose(c.sum(), kernel(1.0), atol=rounding)
    if d == 2:
        rebuilt = np.polynomial.chebyshev.chebval(RHO, c)
    else:
        scale = scipy.special.eval_gegenbauer(np.arange(31), (d - 2) / 2, 1.0)
        polynomials = scipy.special.eval_gegenbauer(np.arange(31)[:, None], (d - 2) / 2, np.asarray(RHO)[None])
        rebuilt = c @ (polynomials / scale[:, None])
    np.testing.assert_allclose(rebuilt, kernel(RHO), atol=rounding)


@pytest.mark.parametrize("beta", [0.0, 1.0, 4.0])
@pytest.mark.parametrize(("phi", "d"), [(jax.nn.relu, 5), (jax.nn.relu, 64), (jax.nn.sigmoid, 5), (jnp.tanh, 5)])
def test_dissipation_rate_is_the_infimum(phi, d, beta):
    kernel = ActivationKernel(phi, d, 1 / d, 0.01, 0.01)
    u = np.linspace(-1, 1 - 1e-5, 20001)
    F = np.asarray(energy_decay(kernel, beta, u))
    rate = dissipation_rate(kernel, beta)
    slack = 1e-6 * np.abs(F).max()
    assert -rate <= F.min() + slack and rate >= pair_rate(kernel)
    # attained: on the grid, or in the limit
    assert min(F.min(), -pair_rate(kernel)) <= -rate + 1e-3 * np.abs(F).max()


def test_limit_and_end_of_the_decay():
    kernel = ActivationKernel(jnp.tanh, 6, 0.5, 0.1, 0.1)
    np.testing.assert_allclose(energy_decay(kernel, 1.5, 1 - 1e-6), -pair_rate(kernel), rtol=1e-4)
    end = 1.5 * np.exp(-1.5) * 5 * (kernel(1.0) + kernel(-1.0)) / (np.exp(1.5) - np.exp(-1.5))
    np.testing.assert_allclose(energy_decay(kernel, 1.5, -1.0), end, rtol=1e-12)
    np.testing.assert_allclose(energy_decay(kernel, 1e-9, 0.3), energy_decay(kernel, 0.0, 0.3), rtol=1e-8)


def test_smallest_bias_of_relu_is_that_of_its_formula():
    """Where the limit at u = 1 decides: λ̄ = σ_u² − (d−3)(σ_b² + 2σ_c²)/2 < 0, with σ_b = σ_c."""
    kernel = ActivationKernel(jax.nn.relu, 6, 1 / 6)
    expected = (1 / 6) / (1.5 * 3)
    bias = smallest_bias(kernel, 1.0)
    np.testing.assert_allclose(bias, expected, rtol=1e-5)
    below, above = (ActivationKernel(jax.nn.relu, 6, 1 / 6, s * bias, s * bias) for s in (0.99, 1.01))
    assert is_dissipative(above, 1.0) and not is_dissipative(below, 1.0)
    assert smallest_bias(ActivationKernel(jax.nn.sigmoid, 5, 0.2), 1.0) == 0.0
    assert smallest_bias(ActivationKernel(jax.nn.relu, 3, 1 / 3), 1.0) == np.inf  # needs d > 3


def test_wrong_arguments():
    for arguments, words in [
        ((jnp.tanh, 1, 1.0), "d must be an integer of at least 2"),
        ((jnp.tanh, 3, 0.0), "weight is a variance and must be more than 0"),
        ((jnp.tanh, 3, 1.0, -0.1), "hidden_bias is a variance and must be at least 0"),
        ((jnp.tanh, 3, np.nan), "weight must be finite"),
        ((jnp.sum, 3, 1.0), r"act entry by entry; of shape \(2, 3\), sum makes \(\)"),
        ((lambda x: x * jnp.ones((1, 3)), 3, 1.0), r"of shape \(1, 1\), <lambda> makes \(1, 3\)"),
        ((jax.nn.glu, 3, 1.0), r"of shape \(2, 3\), glu raises AssertionError: axis size must be divisible"),
        ((jax.nn.softmax, 3, 1.0), "softmax makes 0.0301.* of the entry -2 among others, and 1 of that entry alone"),
        ((lambda x: x - jnp.mean(x), 3, 1.0), "entry -2 among others, and 0 of that entry alone"),
        ((lambda x: x > 0, 3, 1.0), "must make real floating numbers; <lambda> makes bool"),
        ((jnp.log, 3, 1.0), r"wherever the Gaussian reaches; log makes NaN of -0\.9"),
        ((lambda x: jnp.exp(x) / jnp.exp(x), 3, 1e4), r"<lambda> makes NaN of -?7[0-9][0-9]\."),
    ]:
        with pytest.raises(ValueError, match=words):
            ActivationKernel(*arguments)
    assert tfl.theory.ActivationKernel is ActivationKernel


@pytest.mark.parametrize("phi", [jnp.tanh, jax.nn.relu, jax.nn.silu])
@pytest.mark.parametrize("bias", [0.0, 0.1])
def test_the_rate_of_the_energy_is_the_same_in_single_precision(phi, bias):
    """Near one cluster the two sides of F cancel; the first form of it gave clean wrong fractions there."""
    double, single = (
        ActivationKernel(phi, 5, *(jnp.asarray(v, dtype) for v in (0.2, bias, bias)))
        for dtype in ("float64", "float32")
    )
    rate = dissipation_rate(single, jnp.float32(1.0))
    np.testing.assert_allclose(rate, dissipation_rate(double, 1.0), atol=2e-4)
    for gap in (0.0, 1e-7, 1e-5, 1e-3, 0.1):
        u = 1 - jnp.asarray(gap, "float32")
        np.testing.assert_allclose(
            energy_decay(single, jnp.float32(1.0), u), energy_decay(double, 1.0, u.astype(float)), atol=2e-3
        )


def test_the_energy_decays_at_the_pair_rate_at_one_cluster():
    kernel = ActivationKernel(jnp.tanh, 5, 0.2)
    np.testing.assert_allclose(energy_decay(kernel, 1.0, 1.0), -pair_rate(kernel), rtol=1e-12)
    np.testing.assert_allclose(dissipation_rate(kernel, 1.0), pair_rate(kernel), rtol=1e-9)


def test_activations_are_probed_under_transformations_too():
    """Their values are known while tracing, unless they hold what is traced."""
    with pytest.raises(ValueError, match="softmax makes"):
        jax.jit(lambda weight: ActivationKernel(jax.nn.softmax, 3, weight)(0.5))(1.0)
    slope = jax.jit(jax.grad(lambda a: ActivationKernel(lambda x: jnp.tanh(a * x), 3, 0.25)(0.5)))(2.0)
    wanted = jax.grad(lambda weight: ActivationKernel(jnp.tanh, 3, weight)(0.5))(1.0)
    np.testing.assert_allclose(slope, wanted, rtol=1e-12)  # dv/da = 2 a/4 = 1


def test_an_activation_without_a_second_moment_is_warned_of():
    with pytest.warns(UserWarning, match="kernel of <lambda> at the variance 1 overflows"):
        ActivationKernel(lambda x: jnp.exp(1e3 * x), 3, 1.0)


def test_arguments_outside_of_where_the_formulas_hold_are_refused():
    kernel = ActivationKernel(jnp.tanh, 4, 0.5, 0.1, 0.1)
    for call, words in [
        (lambda: kernel(jnp.array([0.0, 1.1])), r"rho must lie in \[-1, 1\]; got 1\.1 at index \(1,\)"),
        (lambda: kernel.derivative(-1.01), r"rho must lie in \[-1, 1\]; got -1\.01"),
        (lambda: kernel(np.inf), r"rho must lie in \[-1, 1\]; got inf"),
        (lambda: energy_decay(kernel, 1.0, 1.5), r"u must lie in \[-1, 1\]; got 1\.5"),
        (lambda: energy_decay(kernel, -1.0, 0.5), "beta must be finite and at least 0; got -1"),
        (lambda: dissipation_rate(kernel, -0.1), "beta must be finite and at least 0"),
        (lambda: is_dissipative(kernel, np.inf), "beta must be finite and at least 0; got inf"),
        (lambda: dissipation_rate(kernel, jnp.ones(3)), r"beta must be one number; got shape \(3,\)"),
        (lambda: ActivationKernel(jnp.tanh, 3, *jnp.float32([3e38, 3e38])), r"weight \+ hidden_bias must be finite"),
        (lambda: smallest_bias(kernel, -1.0), "beta must be finite and at least 0"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    # rounding is none, NaN says what it is, and what is traced is not known
    np.testing.assert_allclose(kernel(1 + 1e-5), kernel(1.0), rtol=1e-4)
    assert np.isnan(kernel(jnp.nan))
    assert np.isfinite(jax.jit(lambda rho: kernel(rho))(1.5))
