"""W_2 of Gaussians against SciPy, POT and closed forms; derivatives against finite differences, singular cases too."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import ot
import pytest
import scipy.linalg

from transformer_flows.geometry._bures import optimal_map
from transformer_flows.transport import bures_wasserstein, squared_bures_wasserstein

D, N = 4, 3
ONE, ZERO = jnp.eye(D), jnp.zeros(D)
FACTORS = jr.normal(jr.key(0), (2, D, D))
X, Y = FACTORS @ FACTORS.mT
MX, MY = jr.normal(jr.key(1), (2, D))
DX, DY = (lambda a: a + a.mT)(jr.normal(jr.key(2), (2, D, D)))
DMX, DMY = jr.normal(jr.key(3), (2, D))


def centred(x, y):
    return squared_bures_wasserstein(jnp.zeros(x.shape[0], x.dtype), x, jnp.zeros(x.shape[0], x.dtype), y)


def covariance(tokens):
    tokens = tokens - tokens.mean(0, keepdims=True)
    return tokens.T @ tokens / tokens.shape[0]


@jax.jit
def line(pair, change, t):
    """W_2² along a line, and its first three derivatives by three orders of modes."""
    f = lambda t: centred(*jax.tree.map(lambda a, b: a + t * b, pair, change))
    forward = lambda f: lambda t: jax.jvp(f, (t,), (jnp.ones_like(t),))[1]
    return f(t), jax.grad(f)(t), forward(jax.grad(f))(t), jax.grad(forward(jax.grad(f)))(t)


def test_scipy_and_pot():
    cross = scipy.linalg.sqrtm(scipy.linalg.sqrtm(X) @ Y @ scipy.linalg.sqrtm(X)).real
    expected = np.sum((MX - MY) ** 2) + np.trace(X + Y - 2 * cross)
    np.testing.assert_allclose(squared_bures_wasserstein(MX, X, MY, Y), expected, rtol=1e-12)
    expected = ot.gaussian.bures_wasserstein_distance(*map(np.asarray, (MX, MY, X, Y)))
    np.testing.assert_allclose(bures_wasserstein(MX, X, MY, Y), expected, rtol=1e-12)
    np.testing.assert_allclose(optimal_map(ONE, Y), scipy.linalg.sqrtm(Y), rtol=1e-10)
    carry = optimal_map(X, Y)
    np.testing.assert_allclose(carry @ X @ carry, Y, rtol=1e-10)


def test_closed_forms(dtype):
    pairs = {
        D: (ONE, 4 * ONE),
        1.0 + 4.0: (jnp.diag(jnp.array([1.0, 4, 9, 0])), jnp.diag(jnp.array([4.0, 16, 9, 0]))),
        0.0: (ONE, ONE),
    }
    turn = jnp.linalg.qr(FACTORS[0])[0]  # commuting covariances that are not diagonal
    for expected, (x, y) in pairs.items():
        value = centred((turn @ x @ turn.T).astype(dtype), (turn @ y @ turn.T).astype(dtype))
        assert value.dtype == dtype
        np.testing.assert_allclose(value, expected, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-10)
    one_dimensional = bures_wasserstein(jnp.ones(1), jnp.array([[9.0]]), jnp.array([5.0]), jnp.array([[36.0]]))
    np.testing.assert_allclose(one_dimensional, 5.0, rtol=1e-14)


@pytest.mark.parametrize("pair", [(X, Y), (ONE, ONE), (X, X)], ids=["regular", "identity", "equal"])
def test_derivatives_equal_finite_differences(pair):
    at = lambda t: line(pair, (DX, DY), jnp.asarray(t))
    eps = 1e-5
    middle, below, above = at(0.0), at(-eps), at(eps)
    for order in range(3):
        finite = (above[order] - below[order]) / (2 * eps)
        np.testing.assert_allclose(middle[order + 1], finite, rtol=1e-6, atol=1e-4 if pair[0] is pair[1] else 0)


def test_equal_covariances_have_gradient_zero():
    gradient = jax.jit(jax.grad(centred, (0, 1)))
    for slope in gradient(ONE, ONE):
        np.testing.assert_array_equal(slope, 0)
    np.testing.assert_allclose(gradient(ONE, 4 * ONE)[0], -ONE, atol=1e-14)
    np.testing.assert_allclose(gradient(X, X), np.zeros((2, D, D)), atol=1e-12)
    arguments = (MX, ONE, MX, ONE)
    for slope in jax.grad(bures_wasserstein, (0, 1, 2, 3))(*arguments):
        np.testing.assert_array_equal(slope, 0)


def test_second_derivative_in_a_loop_at_repeated_eigenvalues():
    """A loop that is differentiated twice must not lose the rules."""
    loop = lambda t: jax.lax.map(lambda s: centred(ONE + s * DX, ONE + s * DY), t[None])[0]
    value = jax.jit(jax.grad(jax.grad(loop)))(0.0)
    # W_2² = |dx - dy|²/(4 · 1) to second order at equal covariances I
    np.testing.assert_allclose(value, np.sum((DX - DY) ** 2) / 2, rtol=1e-10)


def test_moving_tokens_that_span_a_subspace():
    """The nuclear norm of the factors gives the same value and slope without any covariance."""
    x, y, dx = jr.normal(jr.key(5), (3, N, D))

    def by_tokens(t):
        return centred(covariance(x + t * dx), covariance(y))

    def by_nuclear_norm(t):
        a, b = (np.asarray(v - v.mean(0)[None]) for v in (x + t * dx, y))
        return (np.sum(a**2 + b**2) - 2 * np.linalg.norm(b @ a.T, "nuc")) / N

    value, slope = jax.jit(jax.value_and_grad(by_tokens))(0.0)
    np.testing.assert_allclose(value, by_nuclear_norm(0.0), rtol=1e-12)
    np.testing.assert_allclose(slope, (by_nuclear_norm(1e-5) - by_nuclear_norm(-1e-5)) / 2e-5, rtol=1e-7)
    curve = jax.jit(jax.hessian(by_tokens))(0.0)
    second = (by_nuclear_norm(1e-4) - 2 * by_nuclear_norm(0.0) + by_nuclear_norm(-1e-4)) / 1e-8
    np.testing.assert_allclose(curve, second, rtol=1e-6)


def test_one_sided_derivative_at_a_singular_covariance():
    x, y = jnp.diag(jnp.array([1.0, 2, 0, 0])), jnp.diag(jnp.array([4.0, 2, 0, 0]))
    gradient = jax.jit(jax.grad(centred))
    into_kernel = jnp.diag(jnp.array([0.0, 0, 1, 0]))
    slope = (centred(x + 1e-6 * into_kernel, y) - centred(x, y)) / 1e-6
    np.testing.assert_allclose(jnp.vdot(gradient(x, y), into_kernel), slope, rtol=1e-8)
    np.testing.assert_allclose(gradient(x, y), np.diag([-1.0, 0, 1, 1]), atol=1e-12)
    for pair in ((0 * ONE, 0 * ONE), (0 * ONE, ONE), (x, ONE), (ONE, x), (x, jnp.diag(jnp.array([0.0, 0, 1, 1])))):
        assert np.isfinite(gradient(*pair)).all()
        assert all(np.isfinite(line(pair, (ONE, ONE), jnp.asarray(0.0))))


def test_batches_and_rounded_covariances(dtype):
    row = jnp.array([[-100.0, 1.0]], dtype)
    rank_one = row.T @ row  # one eigenvalue is a rounding error, of either sign
    covariances = jnp.stack([rank_one, 4 * rank_one, jnp.eye(2, dtype=dtype)])
    distances = jax.jit(jax.vmap(lambda c: centred(covariances[0], c)))(covariances)
    assert distances.dtype == dtype
    expected = [0, 10001, 10001 + 2 - 2 * np.sqrt(10001)]
    np.testing.assert_allclose(distances, expected, rtol=1e-5, atol=1e-4)
    slightly = jnp.eye(2, dtype=dtype).at[0, 0].set(-10 * jnp.finfo(dtype).eps)
    np.testing.assert_allclose(centred(slightly, jnp.eye(2, dtype=dtype)), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"cov_x": X.at[0, 1].add(0.1)}, "cov_x must be finite, symmetric.*mirror image by 0.1"),
        ({"cov_y": -Y}, "cov_y must be.*positive semi-definite.*eigenvalue"),
        ({"cov_y": Y[:3]}, r"cov_y must be a covariance \(d, d\)"),
        ({"cov_y": Y[:3, :3]}, "one size"),
        ({"mean_x": MX[:3]}, r"mean_x must have shape \(4,\)"),
        ({"mean_y": MY.at[1].set(jnp.nan)}, "mean_y must be finite"),
        ({"cov_x": X.at[1, 1].set(jnp.inf)}, "cov_x must be finite"),
    ],
)
def test_wrong_gaussians_are_refused(changed, words):
    right = {"mean_x": MX, "cov_x": X, "mean_y": MY, "cov_y": Y}
    with pytest.raises(ValueError, match=words):
        bures_wasserstein(**(right | changed))


def test_a_traced_indefinite_covariance_is_an_error():
    with pytest.raises(Exception, match="cov_x must be finite, symmetric and positive semi-definite"):
        jax.block_until_ready(jax.jit(centred)(-X, Y))
