"""Fourier modes and spherical harmonics against SciPy, autodiff and their definitions."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.integrate
import scipy.special

import transformer_flows as tfl

CIRCLE = tfl.FourierModes(16)
SPHERE = tfl.SphericalHarmonics(16)
BASES = pytest.mark.parametrize("basis", [CIRCLE, SPHERE], ids=["circle", "sphere"])


@BASES
def test_the_functions_are_orthonormal_and_so_are_their_gradients(basis):
    gram = np.einsum("g,gk,gj->kj", basis.weights, basis.values, basis.values)
    np.testing.assert_allclose(gram, np.eye(basis.size), atol=1e-12)
    slopes = np.asarray(basis.gradients).transpose(0, 2, 1).reshape(basis.size, -1)
    gram = (slopes * np.tile(basis.weights, basis.manifold.d)) @ slopes.T
    l = basis.degrees
    np.testing.assert_allclose(gram, np.diag(l * (l + basis.manifold.d - 2)), atol=1e-10)
    np.testing.assert_allclose(np.einsum("kgd,gd->kg", basis.gradients, basis.nodes), 0, atol=1e-12)


def test_high_degrees_are_orthonormal():
    basis = tfl.SphericalHarmonics(32, exactness=64)
    values = np.asarray(basis.values)
    np.testing.assert_allclose((values * np.asarray(basis.weights)[:, None]).T @ values, np.eye(33**2), atol=1e-12)


def test_values_on_the_sphere_are_those_of_scipy():
    x, y, z = np.asarray(SPHERE.nodes).T
    polar, turn = np.arccos(z), np.arctan2(y, x)
    for l in (0, 1, 2, 7, 16):
        for m in range(-l, l + 1):
            whole = np.sqrt(4 * np.pi) * scipy.special.sph_harm_y(l, abs(m), polar, turn)
            # SciPy's functions carry the sign (-1)^m of Condon and Shortley
            part = whole.real if m == 0 else (-1) ** m * np.sqrt(2) * (whole.real if m > 0 else whole.imag)
            np.testing.assert_allclose(SPHERE.values[:, l * l + l + m], part, atol=1e-11)


def test_values_on_the_circle_are_cosines_and_sines():
    turn = np.arctan2(CIRCLE.nodes[:, 1], CIRCLE.nodes[:, 0])
    for k in (1, 5, 16):
        np.testing.assert_allclose(CIRCLE.values[:, 2 * k - 1], np.sqrt(2) * np.cos(k * turn), atol=1e-12)
        np.testing.assert_allclose(CIRCLE.values[:, 2 * k], np.sqrt(2) * np.sin(k * turn), atol=1e-12)


@pytest.mark.parametrize("basis", [tfl.FourierModes(5), tfl.SphericalHarmonics(5)], ids=["circle", "sphere"])
def test_values_at_points_and_gradients_by_autodiff(basis):
    """The tabulated gradients are the tangent parts of the derivatives of the functions called at points."""
    points = jnp.concatenate([basis.nodes, -jnp.eye(basis.manifold.d)])  # the poles too

    @jax.jit
    def evaluate(points):
        slopes = jax.vmap(jax.jacfwd(lambda x: basis(x[None])[0]))(points)
        return basis(points), basis.manifold.project(points[:, None], slopes)

    values, slopes = evaluate(points)
    g = len(basis.nodes)
    np.testing.assert_allclose(values[:g], basis.values, atol=1e-13)
    np.testing.assert_allclose(slopes[:g], jnp.moveaxis(basis.gradients, 0, 1), atol=1e-12)
    assert np.isfinite(slopes).all()
    assert basis(points.astype("float32")).dtype == jnp.float32


@BASES
def test_coefficients_of_a_density_and_of_tokens(basis):
    """A density of known coefficients, and tokens at one point, whose coefficients are the functions' values."""
    axis = jnp.zeros(basis.manifold.d).at[0].set(1.0)
    c = basis.coefficients(1 + basis.nodes @ axis + (basis.nodes @ axis) ** 3)
    points = basis.manifold.uniform(jr.key(0), 5)
    np.testing.assert_allclose(basis.density(c, points), 1 + points @ axis + (points @ axis) ** 3, atol=1e-13)
    assert c[0] == pytest.approx(1, abs=1e-14) and basis.bound(c) >= 3
    same = jnp.broadcast_to(points[:1], (4, basis.manifold.d))
    np.testing.assert_allclose(basis.empirical(same), basis(points[:1])[0], atol=1e-13)
    # the addition theorem: the squares of the functions of one degree add up to their number
    of_degree = np.bincount(basis.degrees, weights=np.asarray(basis(points[:1])[0]) ** 2)
    np.testing.assert_allclose(of_degree, np.bincount(basis.degrees), rtol=1e-12)


@pytest.mark.parametrize("basis", [tfl.FourierModes(3), tfl.SphericalHarmonics(3)], ids=["circle", "sphere"])
def test_draws_have_the_moments_of_the_density(basis):
    c = basis.coefficients(jnp.exp(1.5 * basis.nodes[:, 0]))
    c = c / c[0]
    x = basis.sample(jr.key(1), c, 4000)
    np.testing.assert_allclose(jnp.linalg.norm(x, axis=-1), 1, rtol=1e-12)
    # the mean of Y_k has the variance (∫Y_k² ρ dσ - c_k²)/n; ρ is not negative here
    assert (basis.values @ c).min() > 0
    second = np.einsum("g,gk,gj,j->k", basis.weights, basis.values**2, basis.values, c)
    error = (basis.empirical(x) - c)[1:] / np.sqrt((second - c**2)[1:] / len(x))
    assert np.abs(error).max() < 4.5 and np.abs(error).mean() > 0.2


def test_quantiles_of_a_density_on_the_circle():
    """Their shares by SciPy's quadrature, and a sum over few of them is an integral to near rounding."""
    turn = jnp.arctan2(CIRCLE.nodes[:, 1], CIRCLE.nodes[:, 0])
    c = CIRCLE.coefficients(jnp.exp(jnp.sin(turn) + 0.5 * jnp.cos(2 * turn)))
    c = c / c[0]
    x = CIRCLE.quantiles(c, 512)
    rho = lambda angle: float(CIRCLE.density(c, jnp.array([[np.cos(angle), np.sin(angle)]]))[0]) / (2 * np.pi)
    angle = float(jnp.arctan2(x[100, 1], x[100, 0]))
    assert scipy.integrate.quad(rho, 0, angle, epsabs=1e-10)[0] == pytest.approx(100.5 / 512, abs=1e-9)
    np.testing.assert_allclose(CIRCLE.empirical(x)[:7], c[:7], atol=1e-6)


def test_wrong_arguments_are_refused():
    for kind in (tfl.FourierModes, tfl.SphericalHarmonics):
        with pytest.raises(ValueError, match="degree must be an integer of at least 1"):
            kind(0)
        with pytest.raises(ValueError, match="exactness must be an integer of at least 8"):
            kind(4, exactness=7)
    with pytest.raises(ValueError, match=r"points must be vectors of R\^3"):
        SPHERE(jnp.ones((4, 2)))
    for basis, wrong, kind in ((CIRCLE, 5, "FourierModes"), (SPHERE, 33, "SphericalHarmonics")):
        message = rf"coefficients must hold .* {basis.size} functions of {kind}.16., .*; got shape .{wrong},."
        points = basis.nodes[:2]
        for use in (
            lambda c, basis=basis, points=points: basis.density(c, points),
            lambda c, basis=basis: basis.sample(jr.key(0), c, 2),
            lambda c, basis=basis: basis.bound(c),
        ):
            with pytest.raises(ValueError, match=message):
                use(jnp.ones(wrong))
    with pytest.raises(Exception, match="somewhere positive"):
        tfl.FourierModes(1).sample(jr.key(0), jnp.array([jnp.nan, 0.0, 0.0]), 2)


def test_quantiles_have_the_derivative_of_finite_differences_and_need_a_density():
    basis = tfl.FourierModes(4)
    c = jnp.zeros(9).at[0].set(1.0).at[1].set(0.5).at[4].set(0.2)
    direction = jnp.zeros(9).at[1:].set(jr.normal(jr.key(0), (8,)))
    at = lambda h: basis.quantiles(c + h * direction, 5)
    _, tangent = jax.jvp(at, (0.0,), (1.0,))
    np.testing.assert_allclose(tangent, (at(1e-5) - at(-1e-5)) / 2e-5, atol=1e-6)
    for wrong in (2 * c, c.at[1].set(3.0), 0 * c):
        with pytest.raises(ValueError, match="positive and of mass 1"):
            basis.quantiles(wrong, 5)
    with pytest.raises(ValueError, match="value for each of the nodes"):
        basis.coefficients(jnp.ones(1))
    np.testing.assert_allclose(basis.coefficients(jnp.ones(basis.nodes.shape[0], int))[0], 1.0)
