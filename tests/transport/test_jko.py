"""Minimising movements: each step against its definition, order of convergence, monotone energy, derivatives."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.optimize

import transformer_flows as tfl
from transformer_flows.transport import jko_flow

from ..problems import MultiHead

SPHERE = tfl.Sphere(3)
ENERGY = {"energy": tfl.Energy()}


def small(n=6, h=2, sign=-1):
    problem = MultiHead(n=n, h=h, sign=sign)
    return tfl.Heads.tied(0.5 * problem.heads.D, sign=sign), problem.x0


def numpy_step(x, D, sign, tau):
    """The proximal step by SciPy's minimiser, from its definition."""
    x, D = np.asarray(x), np.asarray(D)
    kernel = lambda a, b: np.exp(np.einsum("id,hde,je->hij", a, D, b))
    mobility = 1 / np.mean(1 / kernel(x, x).mean(axis=2), axis=0)

    def objective(flat):
        y = flat.reshape(x.shape)
        y = y / np.linalg.norm(y, axis=1, keepdims=True)
        angle = np.arccos(np.clip((x * y).sum(axis=1), -1, 1))
        return -sign * 0.5 * kernel(y, y).mean() + np.mean(mobility * angle**2) / (2 * tau)

    start = (x + 1e-3 * np.random.default_rng(0).normal(size=x.shape)).ravel()
    found = scipy.optimize.minimize(objective, start, method="BFGS", options={"gtol": 1e-9}).x.reshape(x.shape)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_step_is_the_minimiser_of_its_definition(sign):
    heads, x0 = small(n=3, sign=sign)
    step = jko_flow(tfl.MobilityFlow(SPHERE, heads), x0, 0.3, 1, observe=ENERGY)
    assert sign * jnp.diff(step.observed["energy"])[0] > 0
    np.testing.assert_allclose(step.states[1], numpy_step(x0, heads.D, sign, 0.3), atol=3e-6)


def test_converges_at_first_order_to_the_mobility_flow_under_moving_heads():
    heads, x0 = small()
    flow = tfl.MobilityFlow(SPHERE, tfl.Oscillating(heads, tfl.phase_spread(2)))
    exact = tfl.solve(flow, x0, np.array([0.0, 0.4])).states[-1]
    taus = np.array([0.1, 0.05, 0.025])
    # the steps that are not taken are cut off: one shape, one compilation
    ends = [jko_flow(flow, x0, tau, 16).states[round(0.4 / tau)] for tau in taus]
    errors = [float(jnp.abs(end - exact).max()) for end in ends]
    order = np.diff(np.log(errors)) / np.diff(np.log(taus))
    assert order[-1] > 0.9 and errors[-1] < 0.01


def test_energy_never_rises_for_any_tau(dtype):
    heads, x0 = small()
    for tau in (0.01, 1.0, 10.0):
        run = jko_flow(tfl.MobilityFlow(SPHERE, heads), x0.astype(dtype), tau, 16, observe=ENERGY)
        assert run.status == "successful" and run.states.dtype == dtype
        energy = run.observed["energy"]
        rounding = 4 * np.finfo(dtype).eps * float(energy[0])
        assert np.diff(energy).max() <= rounding and energy[-1] < energy[0]
        np.testing.assert_allclose(jnp.linalg.norm(run.states, axis=-1), 1, atol=1e-6 if dtype == "float32" else 1e-14)


def test_derivatives_are_those_of_the_minimisers_in_both_modes():
    heads, x0 = small()
    direction = SPHERE.project(x0, jr.normal(jr.key(0), x0.shape))

    def end(scale, shift):
        flow = tfl.MobilityFlow(SPHERE, tfl.Heads.tied(scale * heads.D, sign=-1))
        return jko_flow(flow, SPHERE.exp(x0, shift * direction), 0.2, 2, tolerance=1e-11).states[-1][:, 0].sum()

    at, h = (jnp.array(1.0), jnp.array(0.0)), 1e-4
    both = jax.jit(jax.value_and_grad(end, argnums=(0, 1)))
    reverse = both(*at)[1]
    value = lambda scale, shift: both(jnp.asarray(scale), jnp.asarray(shift))[0]
    differences = (value(1 + h, 0.0) - value(1 - h, 0.0)) / (2 * h), (value(1.0, h) - value(1.0, -h)) / (2 * h)
    np.testing.assert_allclose(reverse, differences, rtol=1e-5)
    _, forward = jax.jit(lambda at: jax.jvp(end, at, (jnp.array(1.0), jnp.array(1.0))))(at)
    np.testing.assert_allclose(forward, sum(reverse), rtol=1e-7)


def test_stationary_and_coincident_tokens_stay():
    """Zero slope: tokens in one point, and at the two ends of an axis."""
    heads, _ = small()
    eigenvector = jnp.linalg.eigh(heads.D[0])[1][:, 0]
    for sides in (jnp.ones((6, 1)), jnp.array([[1.0], [-1], [1], [-1], [1], [-1]])):
        x0 = sides * eigenvector[None]
        one = tfl.Heads.tied(jnp.stack([heads.D[0]] * 2), sign=-1)
        run = jko_flow(tfl.MobilityFlow(SPHERE, one), x0, 0.1, 16)
        assert run.status == "successful"
        np.testing.assert_allclose(run.states, jnp.broadcast_to(x0, run.states.shape), atol=1e-7)


def test_padded_tokens_do_not_matter():
    heads, x0 = small()
    padded = jnp.concatenate([x0, jnp.full((2, 3), 5.0)])
    flow = tfl.MobilityFlow(SPHERE, heads, mask=tfl.Padding(jnp.arange(8) < 6))
    states = jko_flow(flow, padded, 0.3, 1).states
    plain = jko_flow(tfl.MobilityFlow(SPHERE, heads), x0, 0.3, 1).states
    np.testing.assert_allclose(states[:, :6], plain, atol=1e-8)


def test_what_is_not_reached_is_nan_and_said():
    heads, x0 = small()
    run = jko_flow(tfl.MobilityFlow(SPHERE, heads), x0, 0.3, 3, max_iterations=2, observe=ENERGY, states=False)
    assert run.status == "solver_failed" and run.end_time == 0.0 and run.states is None
    np.testing.assert_array_equal(np.isnan(run.observed["energy"]), [False, True, True, True])


def test_wrong_arguments():
    heads, x0 = small()
    flow = tfl.MobilityFlow(SPHERE, heads)
    for tau in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="tau must be one positive finite number"):
            jko_flow(flow, x0, tau, 1)
    with pytest.raises(ValueError, match="needs tied heads"):
        jko_flow(tfl.AttentionFlow(SPHERE, MultiHead().heads), x0, 0.1, 1)
    with pytest.raises(ValueError, match="token 0"):
        jko_flow(flow, x0.at[0].set(jnp.nan), 0.1, 1)
    with pytest.raises(ValueError, match="steps must be a positive integer"):
        jko_flow(flow, x0, 0.1, 0)
    with pytest.raises(ValueError, match="tolerance must be"):
        jko_flow(flow, x0, 0.1, 1, tolerance=0.0)
    with pytest.raises(ValueError, match="observe\\['balance'\\]"):
        jko_flow(flow, x0, 0.1, 1, observe={"balance": tfl.EnergyBalance()})
    with pytest.raises(ValueError, match="t0 must be one finite time"):
        jko_flow(flow, x0, 0.1, 1, t0=np.nan)
    with pytest.raises(ValueError, match="mask must be Padding or None"):
        jko_flow(tfl.AttentionFlow(SPHERE, heads, mask=tfl.Causal()), x0, 0.1, 1)
    noise = tfl.OrnsteinUhlenbeck(start=heads, mean=jnp.eye(3), rate=1.0, noise=1.0)
    drawn = noise.sample(jr.key(0), jnp.linspace(0.0, 1.0, 11))
    with pytest.raises(ValueError, match=r"times on which the .* was drawn"):
        jko_flow(tfl.MobilityFlow(SPHERE, drawn), x0, 1.0, 5)
