"""The flow of Gaussian laws against the moments of quadrature, the Riccati equation itself, and its closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import transformer_flows as tfl

D, H = 3, 2
DRAW = np.random.default_rng(0)
A, b = 0.4 * DRAW.normal(size=(D, D)), DRAW.normal(size=D)
V, B = 0.3 * DRAW.normal(size=(2, H, D, D))
c = DRAW.normal(size=D)
COV = np.cov(DRAW.normal(size=(D, 10)))
MEAN = DRAW.normal(size=D)
START = tfl.Gaussian(MEAN, COV)
TS = jnp.linspace(0.0, 1.0, 5)
FLOW = tfl.GaussianFlow(A, V, B, b, c)


def riccati(t, y):
    """m' and Σ' as they stand in the paper, averaged over heads."""
    m, S = y[:D], y[D:].reshape(D, D)
    VSB = np.mean([v @ S @ w for v, w in zip(V, B, strict=True)], axis=0)
    Vbar = V.mean(axis=0)
    moved = (A + Vbar + VSB) @ m + Vbar @ S @ c + b
    rate = (A + VSB) @ S
    return np.concatenate([moved, (rate + rate.T).ravel()])


def test_moments_obey_the_riccati_equation():
    exact = scipy.integrate.solve_ivp(
        riccati, (0, 1), np.concatenate([MEAN, COV.ravel()]), "DOP853", TS, rtol=1e-12, atol=1e-13
    )
    sol = tfl.solve(FLOW, START, TS)
    assert sol.status == "successful" and isinstance(sol.states, tfl.Gaussian)
    np.testing.assert_allclose(sol.states.mean, exact.y[:D].T, atol=1e-7)
    np.testing.assert_allclose(sol.states.cov, exact.y[D:].T.reshape(5, D, D), atol=1e-7)
    assert (sol.states.cov == jnp.swapaxes(sol.states.cov, 1, 2)).all()


def test_the_velocity_is_softmax_attention_of_a_gaussian():
    """∫ y e^{⟨Bx+c, y⟩} dμ over its normalisation, by Gauss–Hermite quadrature in three dimensions."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), -1).reshape(-1, 3)
    mass = np.prod(np.stack(np.meshgrid(weights, weights, weights, indexing="ij"), -1), -1).ravel()
    y = MEAN + grid @ np.linalg.cholesky(COV).T
    x = np.array([0.3, -0.2, 0.5])
    wanted = A @ x + b
    for v, w in zip(V, B, strict=True):
        tilt = mass * np.exp(y @ (w @ x + c))
        wanted = wanted + v @ (tilt @ y / tilt.sum()) / H
    slope, shift = FLOW.affine(0.0, START)
    np.testing.assert_allclose(slope @ x + shift, wanted, atol=1e-10)


def test_log_determinant_grows_by_the_trace():
    rate = jax.jvp(lambda g: jnp.linalg.slogdet(g.cov)[1], (START,), (FLOW(0.0, START),))[1]
    VSB = np.mean([v @ COV @ w for v, w in zip(V, B, strict=True)], axis=0)
    np.testing.assert_allclose(rate, 2 * np.trace(A + VSB), rtol=1e-12)


def test_rank_is_kept_for_long_in_single_precision():
    """Fault 24: a start of rank 3 in six dimensions still has rank 3 at T = 200."""
    draw = np.random.default_rng(1)
    q = draw.normal(size=(6, 6))
    V = -(q @ q.T / 6 + 0.1 * np.eye(6))
    f32 = lambda x: jnp.asarray(x, "float32")
    flow = tfl.GaussianFlow(f32(0.3 * draw.normal(size=(6, 6))), f32(V), f32(np.eye(6)))
    low = draw.normal(size=(6, 3))
    sol = tfl.solve(
        flow, tfl.Gaussian(f32(np.zeros(6)), f32(low @ low.T)), jnp.linspace(0.0, 200.0, 5, dtype="float32")
    )
    assert sol.status == "successful" and sol.states.mean.dtype == "float32"
    assert (sol.states.rank[:2] == 3).all() and (sol.states.rank <= 3).all()
    assert (np.asarray(sol.states.cov) == np.swapaxes(sol.states.cov, 1, 2)).all()
    eigenvalues = np.linalg.eigvalsh(sol.states.cov)
    assert (eigenvalues.min(axis=1) > -1e-6 * eigenvalues.max(axis=1)).all()


def test_controls_that_move():
    """A path in the place of an array; a piecewise-constant one is the sum of its pieces."""
    first, second = tfl.GaussianFlow(A, V, B, b), tfl.GaussianFlow(-A, V, B, b)
    steps = tfl.PiecewiseConstant([0.0, 0.5, 1.0], jnp.stack([A, -A]))
    moving = tfl.GaussianFlow(tfl.Prescribed(steps, jumps=[0.5]), V, B, b)
    half = jnp.linspace(0.0, 0.5, 2)
    middle = jax.tree.map(lambda leaf: leaf[-1], tfl.solve(first, START, half).states)
    end = tfl.solve(second, middle, half).states
    sol = tfl.solve(moving, START, TS)
    np.testing.assert_allclose(sol.states.cov[-1], end.cov[-1], atol=1e-7)
    np.testing.assert_allclose(sol.states.mean[-1], end.mean[-1], atol=1e-7)


def scalar_end(a, vb, start, **options):
    flow = tfl.GaussianFlow(A=a[None, None], V=jnp.ones((1, 1)), B=vb[None, None])
    return tfl.solve(flow, tfl.Gaussian(jnp.zeros(1), start[None, None]), jnp.linspace(0.0, 2.0, 21), **options)


@pytest.mark.parametrize("a", [0.3, -0.3, 1e-9])
def test_blow_up_is_a_status_with_a_time(a):
    """t* = ln(1 + a/(vbσ0))/(2a) in value and gradient; NaN after it, everything before it kept."""
    values = tuple(map(jnp.asarray, (a, 0.5, 1.0)))
    exact = lambda a, vb, start: jnp.log1p(a / (vb * start)) / (2 * a)
    sol = scalar_end(*values)
    assert sol.status == "blow_up" and str(sol.status) == "blow_up"
    np.testing.assert_allclose(sol.end_time, exact(*values), rtol=1e-6)
    before = np.asarray(sol.ts) < float(sol.end_time)
    assert np.isfinite(sol.states.cov[before]).all() and np.isnan(sol.states.cov[~before]).all()
    slopes = jax.grad(lambda *v: scalar_end(*v).end_time, (0, 1, 2))(*values)
    np.testing.assert_allclose(slopes, jax.grad(exact, (0, 1, 2))(*values), rtol=1e-4)


def test_blow_up_of_one_lane_leaves_the_others_alone():
    ends, statuses, last = jax.vmap(lambda vb: (lambda s: (s.end_time, s.status.code, s.states.cov[-1, 0, 0]))(
        scalar_end(jnp.asarray(0.3), vb, jnp.asarray(1.0))
    ))(jnp.array([0.5, -0.5]))  # fmt: skip
    assert statuses[0] == tfl.Status.of("blow_up").code and statuses[1] == 0
    np.testing.assert_allclose(ends, [np.log1p(0.6) / 0.6, 2.0], rtol=1e-6)
    assert np.isnan(last[0])
    np.testing.assert_allclose(last[1], 0.3 * np.exp(1.2) / (0.3 + 0.5 * np.expm1(1.2)), rtol=1e-7)


def test_fixed_steps_end_at_a_blow_up():
    """Fault 12: constant steps never run through it and report success."""
    flow = tfl.GaussianFlow(A=jnp.zeros((2, 2)), V=jnp.eye(2), B=jnp.eye(2))
    sol = tfl.solve(flow, tfl.Gaussian(jnp.zeros(2), jnp.eye(2)), jnp.linspace(0.0, 1.0, 11), dt=0.01)
    assert sol.status == "blow_up"
    np.testing.assert_allclose(sol.end_time, 0.5, atol=1e-3)
    np.testing.assert_allclose(sol.states.cov[4], np.eye(2) / (1 - 2 * 0.4), rtol=1e-5)
    assert np.isnan(sol.states.cov[6:]).all()


def test_fast_growth_is_no_blow_up():
    flow = tfl.GaussianFlow(A=30.0 * jnp.eye(2))
    sol = tfl.solve(flow, tfl.Gaussian(jnp.zeros(2), jnp.eye(2)), [0.0, 5.0])
    assert sol.status == "successful"
    np.testing.assert_allclose(sol.states.cov[-1], np.exp(300.0) * np.eye(2), rtol=1e-5)


@pytest.mark.parametrize(
    "controls, word",
    [
        ({}, "at least one"),
        ({"A": np.ones((2, 3))}, "A must have shape"),
        ({"A": np.eye(2), "b": np.zeros(3)}, "b must have shape"),
        ({"V": np.ones((2, 3, 3)), "B": np.ones((4, 3, 3))}, "number of heads"),
        ({"A": np.full((2, 2), np.nan)}, "A must be finite"),
        ({"A": lambda t: np.eye(2)}, "Prescribed"),
    ],
)
def test_wrong_controls_are_refused(controls, word):
    with pytest.raises(ValueError, match=word):
        tfl.GaussianFlow(**controls)


def test_wrong_starts_are_refused():
    with pytest.raises(ValueError, match="Gaussian"):
        tfl.solve(FLOW, jnp.zeros(3), TS)
    with pytest.raises(ValueError, match="R\\^3"):
        tfl.solve(FLOW, tfl.Gaussian(np.zeros(2), np.eye(2)), TS)
