"""The energy balance closes: at the solver's order for smooth weights, at the orders of Itô sums for noise."""

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl

SPHERE = tfl.Sphere(3)
X0 = SPHERE.uniform(jr.key(5), 12)
OBSERVE = {"balance": tfl.EnergyBalance()}


def start(h, sign=-1):
    return tfl.Heads.tied(0.5 * tfl.random_symmetric(jr.key(h), h=h, d=3), sign=sign)


def order(steps, errors):
    return -np.polyfit(np.log(steps), np.log(errors), 1)[0]


def test_smooth_weights_close_at_the_order_of_the_solver():
    """Oscillating weights, 3 heads: the residual at T = 1 for Euler, Heun and Tsit5."""
    path = tfl.Oscillating(start(3), phases=jnp.array([0.0, 1.0, 2.0]))
    flow = tfl.AttentionFlow(SPHERE, path)
    for solver, expected, steps in [
        (diffrax.Euler(), 1, (64, 256)),
        (diffrax.Heun(), 2, (32, 128)),
        (diffrax.Tsit5(), 5, (32, 128)),
    ]:
        residuals = []
        for count in steps:
            sol = tfl.solve(flow, X0, [0.0, 0.5, 1.0], dt=1 / count, solver=solver, observe=OBSERVE, states=False)
            residuals.append(abs(sol.observed["balance"].residual[-1]))
        slope = order(steps, residuals)
        assert abs(slope - expected) < 0.15, (solver, slope, residuals)
    balance = sol.observed["balance"]
    assert abs(balance.weight_drift[-1]) > 0.1 and balance.dissipation[-1] > 0.1
    assert not np.any(balance.ito) and not np.any(balance.martingale)


@pytest.mark.parametrize("h, sign", [(1, 1), (10, -1)])
def test_smooth_weights_close_adaptively(h, sign):
    """To solver accuracy, for either sign of the flow, without changing the steps taken."""
    flow = tfl.AttentionFlow(SPHERE, tfl.Oscillating(start(h, sign), phases=jnp.zeros(h)))
    ts = jnp.linspace(0.0, 1.0, 5)
    sol = tfl.solve(flow, X0, ts, observe=OBSERVE, rtol=1e-9, atol=1e-11)
    assert np.abs(sol.observed["balance"].residual).max() < 1e-7
    if h == 1:
        plain = tfl.solve(flow, X0, ts, rtol=1e-9, atol=1e-11)
        assert plain.stats["num_steps"] == sol.stats["num_steps"]


def test_interpolated_weights_have_no_ito_term():
    """The piecewise-linear view of a noise path balances to solver accuracy."""
    process = tfl.OrnsteinUhlenbeck(start=start(3), mean=jnp.eye(3), rate=1.0, noise=2**0.5)
    path = process.sample(jr.key(0), jnp.linspace(0.0, 1.0, 17)).smoothed()
    flow = tfl.AttentionFlow(SPHERE, path)
    sol = tfl.solve(flow, X0, [0.0, 1.0], observe=OBSERVE, dt=1 / 64, solver=diffrax.Tsit5())
    assert abs(sol.observed["balance"].residual[-1]) < 1e-8
    assert abs(sol.observed["balance"].weight_drift[-1]) > 1e-2
    on_knots = tfl.solve(flow, X0, [0.0, 1.0], observe=OBSERVE, solver=diffrax.Tsit5())
    assert on_knots.stats["num_steps"] == 16
    assert abs(on_knots.observed["balance"].residual[-1]) < 1e-5


def test_jumps_of_the_weights_enter_exactly():
    D = jnp.stack([tfl.random_symmetric(k, h=2, d=3) for k in jr.split(jr.key(2), 4)])
    values = jax.vmap(lambda d: tfl.Heads.tied(0.5 * d, sign=-1))(D)
    flow = tfl.AttentionFlow(SPHERE, tfl.PiecewiseConstant(jnp.array([0.0, 0.21, 0.5, 0.8, 1.0]), values))
    sol = tfl.solve(flow, X0, [0.0, 1.0], observe=OBSERVE, dt=0.05, solver=diffrax.Tsit5())
    balance = sol.observed["balance"]
    assert abs(balance.residual[-1]) < 1e-6 and abs(balance.weight_drift[-1]) > 1e-3
    with pytest.raises(ValueError, match="jumps of the weights"):
        tfl.solve(flow, X0, [0.0, 1.0], observe=OBSERVE, rtol=1e-6)


def residuals(h, count, paths):
    """Plain and pathwise residuals over time of `paths` noise paths, (paths, t) each."""
    process = tfl.OrnsteinUhlenbeck(start=start(h), mean=jnp.eye(3), rate=1.0, noise=2**0.5)
    flow = tfl.AttentionFlow(SPHERE, process)
    ts = np.linspace(0.0, 1.0, 17)
    run = jax.jit(lambda keys: tfl.solve_ensemble(flow, X0, ts, keys, dt=1 / count, observe=OBSERVE, states=False))
    balance = run(jr.split(jr.key(7), paths)).observed["balance"]
    return np.asarray(balance.residual), np.asarray(balance.pathwise_residual), balance


@pytest.mark.parametrize("h", [3, pytest.param(1, marks=pytest.mark.slow), pytest.param(10, marks=pytest.mark.slow)])
def test_noise_closes_at_order_one_pathwise_and_one_half_in_mean_square(h):
    """Ornstein–Uhlenbeck weights, 64 paths refined on the same noise."""
    steps, paths = (32, 128, 512), 64
    rms, worst, each = [], [], []
    for count in steps:
        plain, closed, _ = residuals(h, count, paths)
        rms.append(np.sqrt(np.mean(plain[:, -1] ** 2)))
        each.append(np.abs(closed).max(axis=1))
        worst.append(each[-1].max())
    assert abs(order(steps, rms) - 0.5) < 0.15, rms
    assert abs(order(steps, worst) - 1.0) < 0.2, worst
    every = [order(steps, [e[i] for e in each]) for i in range(paths)]
    # the slope of a single path over three steps scatters about 1; that of the worst path at each step does not
    assert abs(np.median(every) - 1) < 0.1, sorted(every)


def test_leaving_out_a_term_opens_the_balance():
    """The Itô term and the remainder matter: without either the residual is many times larger."""
    plain, closed, balance = residuals(3, 128, 8)
    assert np.sqrt(np.mean(closed[:, -1] ** 2)) < 0.2 * np.sqrt(np.mean(plain[:, -1] ** 2))
    without = plain[:, -1] + np.asarray(balance.ito)[:, -1]
    assert abs(np.mean(without)) > 3 * abs(np.mean(plain[:, -1]))
    assert all(np.abs(np.asarray(field)[:, 0]).max() < 1e-15 for field in balance)
