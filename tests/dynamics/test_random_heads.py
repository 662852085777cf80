"""Heads drawn afresh for every layer: the layer by hand, pieces of a run, and laws that are known exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl

D, H, T = 3, 2, 1.5
SPHERE = tfl.Sphere(D)
ZEROS = jnp.zeros((H, D, D))


def network(weights, layers=6, mlp=None, block=tfl.TwoNorms()):
    return tfl.Network(tfl.AttentionFlow(SPHERE, weights), mlp, layers=layers, horizon=T, block=block)


def test_a_layer_is_its_definition(key):
    """With heads around a mean and a random MLP whose draw is that of a network without random heads."""
    rng = np.random.default_rng(0)
    mean = tfl.Heads(rng.normal(size=(H, D, D)), rng.normal(size=(H, D, D)))
    mlp = tfl.RandomMLP(8, jnp.tanh, D, 1 / 3)
    net = network(tfl.RandomHeads(mean, score=0.5, value=2.0), mlp=mlp, block=tfl.OneNorm())
    x = np.asarray(SPHERE.uniform(key, 5))
    heads = net.flow_of(key, 4).heads(0.0, jnp.asarray(x))
    attention = np.zeros_like(x)
    for score, value in zip(heads.score, heads.value, strict=True):
        weights = np.exp(x @ score.T @ x.T)
        attention += weights @ x @ value.T / weights.sum(axis=1, keepdims=True) / H
    y = x + 0.25 * attention + 0.5 * np.asarray(mlp(jr.fold_in(key, 4), jnp.asarray(x)))
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    np.testing.assert_allclose(net(key, 4, jnp.asarray(x)), y, atol=1e-13)
    fixed = network(heads, mlp=mlp, block=tfl.OneNorm())
    np.testing.assert_allclose(fixed(key, 4, jnp.asarray(x)), y, atol=1e-13)


def test_a_run_is_its_layers_one_by_one_and_may_be_cut(key, dtype):
    net = network(tfl.RandomHeads(tfl.Heads(ZEROS, ZEROS), score=1.0, value=3.0))
    x0 = SPHERE.uniform(key, 5).astype(dtype)
    run = tfl.run_layers(net, x0, key)
    x, one = x0, eqx.filter_jit(net)
    for layer in range(6):
        x = one(key, layer, x)
    assert run.status == "successful" and run.states.dtype == dtype
    np.testing.assert_allclose(run.states[-1], x, atol=100 * np.finfo(dtype).eps)
    half = tfl.run_layers(net, x0, key, last=3)
    rest = tfl.run_layers(net, half.states[-1], key, first=3)
    np.testing.assert_allclose(rest.states[-1], run.states[-1], atol=10 * np.finfo(dtype).eps)
    other = tfl.run_layers(net, x0, jr.fold_in(key, 1))
    assert jnp.abs(other.states[1] - run.states[1]).max() > 0.01


def test_heads_have_the_law_they_are_said_to_have(key):
    """Mean, variances, and no correlation of score and value, of layers, of heads, or with the MLP's weights."""
    mean = tfl.Heads(ZEROS + 0.5, ZEROS - 1)
    net = network(tfl.RandomHeads(mean, score=0.25, value=4.0))
    draws = 20_000

    @jax.jit
    def entries(keys):
        def of(k):
            heads = [net.flow_of(k, layer).weights.value for layer in (0, 1)]
            mlp = jr.normal(jr.split(jr.fold_in(k, 0), 4)[0], (H, D, D))
            return jnp.stack([heads[0].score, heads[0].value, heads[1].score, heads[1].value, mlp])

        return jax.vmap(of)(keys)

    found = np.asarray(entries(jr.split(key, draws))).reshape(draws, -1)
    block = H * D * D
    wanted = np.repeat([0.5, -1, 0.5, -1, 0], block)
    deviation = np.repeat([0.5, 2, 0.5, 2, 1], block)
    scaled = (found - wanted) / deviation
    assert (np.abs(scaled.mean(axis=0)) < 5 / draws**0.5).all()
    covariance = scaled.T @ scaled / draws - np.eye(5 * block)
    assert (np.abs(np.diag(covariance)) < 5 * (2 / draws) ** 0.5).all()
    assert (np.abs(covariance - np.diag(np.diag(covariance))) < 5 / draws**0.5).all()


def test_covariance_of_one_layer_at_zero_scores(key):
    """Every token sees the mean x̄, and A = (1/H) Σ V_h x̄: covariance (v/H)|x̄|² I, and the same A for all tokens."""
    net = network(tfl.RandomHeads(tfl.Heads(ZEROS, ZEROS), value=2.0))
    x = SPHERE.uniform(key, 4)
    draws = 20_000
    pulls = jax.jit(jax.vmap(lambda k: net.flow_of(k, 3).attention(0.0, x)))(jr.split(key, draws))
    np.testing.assert_allclose(pulls, jnp.broadcast_to(pulls[:, :1], pulls.shape), atol=1e-13)
    products = np.einsum("ei,ej->eij", pulls[:, 0], pulls[:, 0])
    error = products.std(axis=0) / draws**0.5
    variance = 2.0 / H * float(jnp.sum(jnp.mean(x, axis=0) ** 2))
    assert (np.abs(products.mean(axis=0) - variance * np.eye(D)) < 5 * error).all() and error.max() < 0.05 * variance


def test_many_layers_are_noise_on_the_value_matrix(key):
    """One token, values of variance σ²L/T: E⟨X_T, X_0⟩ is e^{−½(d−1)σ²T}, as under `ValueNoiseFlow`."""
    strength, layers, members = 0.6, 60, 1000
    one = tfl.Heads(ZEROS[:1], ZEROS[:1])
    net = network(tfl.RandomHeads(one, value=strength**2 * layers / T), layers=layers)
    of_start, of_heads = jr.split(key)
    x0 = SPHERE.uniform(of_start, 1)
    end = jax.vmap(lambda k: tfl.run_layers(net, x0, k, record_every=layers).states[-1, 0])
    cosine = end(jr.split(of_heads, members)) @ x0[0]
    error = float(jnp.std(cosine)) / members**0.5
    assert abs(float(jnp.mean(cosine)) - np.exp(-0.5 * (D - 1) * strength**2 * T)) < 3.5 * error < 0.08


def test_in_a_flow_they_are_drawn_once(key):
    law = tfl.RandomHeads(tfl.Heads(ZEROS, ZEROS), score=1.0, value=1.0)
    flow, ts = tfl.AttentionFlow(SPHERE, law), jnp.array([0.0, 0.5])
    drawn = tfl.realise(flow, key, ts).weights
    assert isinstance(drawn, tfl.Constant)
    again = tfl.realise(flow, key, jnp.array([0.0, 0.1, 3.0])).weights
    np.testing.assert_array_equal(drawn.value.score, again.value.score)
    assert (drawn.value.score != drawn.value.value).all()


def test_what_is_no_law_of_a_layer_is_refused(key):
    law = tfl.RandomHeads(tfl.Heads(ZEROS, ZEROS), value=1.0)
    with pytest.raises(ValueError, match="value must not be negative"):
        tfl.RandomHeads(tfl.Heads(ZEROS, ZEROS), value=-1.0)
    with pytest.raises(ValueError, match=r"got heads in R\^3 and Sphere\(4\)"):
        tfl.AttentionFlow(tfl.Sphere(4), law)
    with pytest.raises(ValueError, match="Brownian not drawn yet"):
        network(tfl.Brownian(tfl.Heads(ZEROS, ZEROS)))
    with pytest.raises(
        ValueError, match=r"RandomHeads not drawn yet: take realise\(flow, key, ts\), or network.flow_of"
    ):
        tfl.run_layers(network(law), SPHERE.uniform(key, 2), key, observe={"energy": tfl.Energy()})


def test_energies_of_recorded_states_under_the_heads_of_a_layer(key):
    """As the message for observables in a run says."""
    net = network(tfl.RandomHeads(tfl.Heads(ZEROS, ZEROS), score=1.0, value=1.0))
    states = tfl.run_layers(net, SPHERE.uniform(key, 4), key).states
    energies = jax.vmap(lambda layer, x: tfl.Energy()(net.depth(layer), x, net.flow_of(key, layer)))(
        jnp.arange(7), states
    )
    scores = np.stack([net.flow_of(key, layer).weights.value.score for layer in range(7)])
    x = np.asarray(states)
    wanted = 0.5 * np.exp(np.einsum("lia,lhba,ljb->lhij", x, scores, x)).mean(axis=(1, 2, 3))
    np.testing.assert_allclose(energies, wanted, rtol=1e-12)
