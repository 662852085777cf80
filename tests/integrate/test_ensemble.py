"""An ensemble member is its solo run; its noise depends on its key alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl

SPHERE = tfl.Sphere(3)
TS = jnp.linspace(0.0, 1.0, 21)
X0 = SPHERE.uniform(jr.key(9), 6)
START = tfl.Heads.tied(tfl.random_symmetric(jr.key(1), h=2, d=3), sign=-1)
NOISY = tfl.AttentionFlow(SPHERE, tfl.OrnsteinUhlenbeck(start=START, mean=jnp.eye(3), rate=1.0, noise=1.4))


class Weights(tfl.AbstractObservable):
    """The first head's matrix."""

    def __call__(self, t, x, flow):
        return flow.heads(t, x).score[0]


def test_members_equal_their_solo_runs():
    keys = jr.split(jr.key(0), 3)
    observe = {"energy": tfl.Energy(), "D": Weights(), "balance": tfl.EnergyBalance()}
    together = tfl.solve_ensemble(NOISY, X0, TS, keys, observe=observe)
    assert together.states.shape == (3, 21, 6, 3) and together.ts.shape == (21,)
    for i, key in enumerate(keys):
        solo = tfl.solve(tfl.realise(NOISY, key, TS), X0, TS, observe=observe)
        np.testing.assert_allclose(together.states[i], solo.states, atol=1e-12)
        np.testing.assert_array_equal(together.observed["D"][i], solo.observed["D"])
        for a, b in zip(together.observed["balance"], solo.observed["balance"], strict=True):
            np.testing.assert_allclose(a[i], b, atol=1e-12)
    assert not np.allclose(together.states[0], together.states[1])
    assert str(together.status) == "3 successful"


def test_members_by_start_and_by_weights():
    starts = jnp.stack([X0, SPHERE.uniform(jr.key(2), 6)])
    D = jnp.stack([START.D, 2 * START.D])
    flows = jax.vmap(lambda d: tfl.AttentionFlow(SPHERE, tfl.Heads.tied(d, sign=-1)))(D)
    by_start = tfl.solve_ensemble(tfl.AttentionFlow(SPHERE, START), starts, TS, in_axes=(None, 0), dt=0.05)
    by_weights = tfl.solve_ensemble(flows, X0, TS, in_axes=(0, None), dt=0.05)
    for i in range(2):
        one = tfl.solve(tfl.AttentionFlow(SPHERE, START), starts[i], TS, dt=0.05)
        np.testing.assert_allclose(by_start.states[i], one.states, atol=1e-12)
        other = tfl.solve(tfl.AttentionFlow(SPHERE, tfl.Heads.tied(D[i], sign=-1)), X0, TS, dt=0.05)
        np.testing.assert_allclose(by_weights.states[i], other.states, atol=1e-12)


def test_noise_is_drawn_on_the_steps_of_dt():
    keys = jr.split(jr.key(0), 2)
    coarse = tfl.solve_ensemble(NOISY, X0, TS[::10], keys, dt=0.05, observe={"D": Weights()})
    fine = tfl.solve_ensemble(NOISY, X0, TS, keys, observe={"D": Weights()})
    np.testing.assert_allclose(coarse.observed["D"], fine.observed["D"][:, ::10], atol=1e-12)
    np.testing.assert_allclose(coarse.states, fine.states[:, ::10], atol=1e-12)


def test_wrong_ensembles_are_refused():
    with pytest.raises(ValueError, match="members apart"):
        tfl.solve_ensemble(tfl.AttentionFlow(SPHERE, START), X0, TS)
    with pytest.raises(ValueError, match="one number of members"):
        tfl.solve_ensemble(NOISY, jnp.stack([X0] * 3), TS, jr.split(jr.key(0), 2), in_axes=(None, 0))
    with pytest.raises(ValueError, match="pass keys"):
        tfl.solve_ensemble(NOISY, jnp.stack([X0] * 3), TS, in_axes=(None, 0))
    with pytest.raises(ValueError, match="token 1"):
        bad = jnp.stack([X0, X0.at[1].set(jnp.nan)])
        tfl.solve_ensemble(tfl.AttentionFlow(SPHERE, START), bad, TS, in_axes=(None, 0))


def test_keys_that_are_not_one_per_member_are_refused():
    one = jr.key(0)
    for keys, got in (
        (one, r"got key<fry> \(\)"),
        (jr.split(one, (2, 3)), r"got key<fry> \(2, 3\)"),
        (jr.PRNGKey(0), r"got uint32 \(2,\)"),
        (jnp.arange(3), r"got int64 \(3,\)"),
        (jnp.zeros((3, 2)), r"got float64 \(3, 2\)"),
    ):
        with pytest.raises(ValueError, match=r"keys must be an array of keys \(e,\).*uint32 of shape \(e, 2\); " + got):
            tfl.solve_ensemble(NOISY, X0, TS, keys)


def test_raw_keys_draw_what_typed_ones_draw():
    typed, raw = (
        tfl.solve_ensemble(NOISY, X0, TS[:3], keys) for keys in (jr.split(jr.key(4), 2), jr.split(jr.PRNGKey(4), 2))
    )
    np.testing.assert_array_equal(typed.states, raw.states)


def test_an_ensemble_is_compiled_once():
    """Other keys and weights run the program there is; knots are part of it, as are paths shared by the members."""
    traces = []

    class Counter(tfl.AbstractObservable):
        def __call__(self, t, x, flow):
            traces.append(0)
            return jnp.zeros(())

    shared = tfl.Interpolated(TS[::4], jax.tree.map(lambda leaf: jnp.stack([leaf] * 6), START))
    field = tfl.GaussianField(tfl.theory.ActivationKernel(jnp.tanh, 3, 0.3), tfl.Harmonics(2))
    flow = tfl.CommonNoiseFlow(tfl.AttentionFlow(SPHERE, shared), field)
    ts, observe = TS[::5], {"counter": Counter()}
    run = lambda flow, seed: tfl.solve_ensemble(flow, X0, ts, jr.split(jr.key(seed), 2), dt=0.05, observe=observe)
    first = run(flow, 0)
    counted = len(traces)
    assert counted > 0
    other = run(jax.tree.map(lambda leaf: 1.0 * leaf if eqx.is_array(leaf) else leaf, flow), 1)
    assert len(traces) == counted
    assert not np.allclose(first.states, other.states)
    under_jit = jax.jit(lambda keys: tfl.solve_ensemble(flow, X0, ts, keys, dt=0.05).states)
    np.testing.assert_allclose(under_jit(jr.split(jr.key(1), 2)), other.states, atol=1e-12)


def test_a_seeded_flow_runs_under_the_users_own_jit_and_vmap():
    """The knots of a path that is an argument of jit are traced; the solve is the same."""
    drawn = tfl.realise(NOISY, jr.key(0), TS)
    plain = tfl.solve(drawn, X0, TS).states
    jitted = eqx.filter_jit(lambda flow: tfl.solve(flow, X0, TS).states)(drawn)
    np.testing.assert_allclose(jitted, plain, atol=1e-12)
    starts = jnp.stack([X0, -X0])
    vmapped = jax.vmap(lambda x: tfl.solve(drawn, x, TS).states)(starts)
    np.testing.assert_allclose(vmapped[0], plain, atol=1e-12)
