"""Networks of random MLPs: the layer against NumPy, the law of the MLP against its kernel, and pieces of a run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl

SPHERE = tfl.Sphere(3)
HEADS = tfl.Heads.identity(3, beta=1.0)


def network(layers=6, block=tfl.TwoNorms(), mlp=True, mask=None, heads=HEADS):
    perceptron = tfl.RandomMLP(16, jnp.tanh, 3, 1 / 3, 0.1, 0.2) if mlp else None
    return tfl.Network(tfl.AttentionFlow(SPHERE, heads, mask=mask), perceptron, layers=layers, horizon=1.5, block=block)


def tokens(n=5):
    x = np.random.default_rng(n).normal(size=(n, 3))
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def unit(v):
    return v / np.linalg.norm(v, axis=1, keepdims=True)


@pytest.mark.parametrize("norms", [1, 2])
def test_a_layer_is_its_definition(norms, key):
    net, x = network(block=tfl.TwoNorms() if norms == 2 else tfl.OneNorm()), np.asarray(tokens())
    weights = np.exp(x @ x.T)
    attention = weights @ x / weights.sum(axis=1, keepdims=True)
    mlp = lambda y: np.asarray(net.mlp(jr.fold_in(key, 4), jnp.asarray(y)))
    step = 1.5 / 6
    y = x + step * attention
    expected = unit(unit(y) + step**0.5 * mlp(unit(y))) if norms == 2 else unit(y + step**0.5 * mlp(x))
    np.testing.assert_allclose(net(key, 4, jnp.asarray(x)), expected, atol=1e-14)


def test_the_mlp_has_the_covariance_of_its_kernel_at_any_width(key):
    """Entries of one output at two tokens over many draws, for a width of 2: mean of products and 5 standard errors."""
    mlp = tfl.RandomMLP(2, jax.nn.silu, 3, 1.0, 0.3, 0.2)
    x = tokens(2)
    draws = jax.jit(jax.vmap(lambda k: mlp(k, x)))(jr.split(key, 20_000))
    products = np.einsum("eid,ejd->eijd", draws, draws).reshape(-1, 4, 3)
    expected = np.asarray(mlp.kernel(x @ x.T)).reshape(4, 1)
    error = products.std(axis=0) / len(products) ** 0.5
    assert (np.abs(products.mean(axis=0) - expected) < 5 * error).all()
    across = (draws[:, 0, 0] * draws[:, 0, 1]).mean()
    assert abs(across) < 5 * np.asarray(draws[:, 0, 0] * draws[:, 0, 1]).std() / 20_000**0.5


def test_a_run_is_its_layers_one_by_one_and_may_be_cut(key, dtype):
    net, x0 = network(), tokens().astype(dtype)
    observe = {"energy": tfl.Energy(), "time": tfl.TimeIntegral(tfl.Energy())}
    run = tfl.run_layers(net, x0, key, record_every=2, observe=observe)
    assert run.status == "successful" and run.states.dtype == dtype and run.stats["num_steps"] == 6
    np.testing.assert_allclose(run.ts, [0.0, 0.5, 1.0, 1.5], rtol=1e-12)
    x, energies, one = x0, [], eqx.filter_jit(net)
    for layer in range(6):
        energies.append(float(tfl.Energy()(0.0, x, net.flow)))
        x = one(key, layer, x)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(run.states[-1], x, atol=tolerance)
    np.testing.assert_allclose(run.observed["time"][-1], 0.25 * np.sum(energies), rtol=1e-5)
    half = tfl.run_layers(net, x0, key, last=4, record_every=2)
    rest = tfl.run_layers(net, half.states[-1], key, first=4, record_every=2)
    np.testing.assert_allclose(rest.states[-1], run.states[-1], atol=10 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(rest.ts, run.ts[2:])


def test_without_mlps_deep_networks_are_the_flow(key):
    """Depth error of order 1/L."""
    x0 = tokens()
    exact = tfl.solve(network().flow, x0, [0.0, 1.5]).states[-1]
    errors = [
        np.abs(tfl.run_layers(network(layers, mlp=False), x0, key, record_every=layers).states[-1] - exact).max()
        for layers in (50, 100)
    ]
    assert errors[1] < 0.02 and abs(np.log2(errors[0] / errors[1]) - 1) < 0.1


def test_padded_tokens_do_not_move_nor_matter(key):
    padded = jnp.concatenate([tokens(), jnp.full((2, 3), 5.0)])
    run = tfl.run_layers(network(mask=tfl.Padding(jnp.arange(7) < 5)), padded, key)
    plain = tfl.run_layers(network(), tokens(), key)
    np.testing.assert_allclose(run.states[:, :5], plain.states, atol=1e-13)
    assert not run.states[:, 5:].any()


def test_gradient_equals_finite_differences(key):
    x0 = tokens()

    @jax.jit
    def loss(scale):
        return (
            tfl.run_layers(network(heads=tfl.Heads.identity(3, beta=scale)), x0, key, record_every=3).states[-1].sum()
        )

    gradient = jax.grad(loss)(1.0)
    np.testing.assert_allclose(gradient, (loss(1 + 1e-5) - loss(1 - 1e-5)) / 2e-5, rtol=1e-7)


def test_an_overflow_is_a_status(key):
    with pytest.warns(UserWarning, match="overflows"):  # the kernel, which the network does not use
        mlp = tfl.RandomMLP(4, lambda x: jnp.exp(1e3 * x), 3, 1.0)
    net = tfl.Network(network().flow, mlp, layers=4, horizon=1.0)
    run = tfl.run_layers(net, tokens(), key, observe={"energy": tfl.Energy()})
    assert run.status == "non_finite" and run.end_time < 1.0
    assert np.isnan(run.observed["energy"][-1]) and np.isfinite(run.observed["energy"][0])


def test_wrong_arguments(key):
    flow, mlp = network().flow, network().mlp
    with pytest.raises(ValueError, match="width must be an integer of at least 1; got 0"):
        tfl.RandomMLP(0, jnp.tanh, 3, 1.0)
    with pytest.raises(ValueError, match="layers must be an integer of at least 1; got 0"):
        tfl.Network(flow, mlp, layers=0, horizon=1.0)
    with pytest.raises(ValueError, match="horizon must be one positive finite depth"):
        tfl.Network(flow, mlp, layers=2, horizon=0.0)
    with pytest.raises(ValueError, match="in R\\^3, those of mlp in R\\^4"):
        tfl.Network(flow, tfl.RandomMLP(2, jnp.tanh, 4, 1.0), layers=2, horizon=1.0)
    with pytest.raises(ValueError, match="must divide the 6 layers"):
        tfl.run_layers(network(), tokens(), key, record_every=4)
    with pytest.raises(ValueError, match="must be some of the 6 layers"):
        tfl.run_layers(network(), tokens(), key, last=7)
    with pytest.raises(ValueError, match="entry by entry"):
        tfl.RandomMLP(2, lambda x: x[..., :1], 3, 1.0)
    with pytest.raises(ValueError, match="softmax makes"):
        tfl.RandomMLP(2, jax.nn.softmax, 3, 1.0)
    with pytest.raises(ValueError, match="log makes NaN"):
        tfl.RandomMLP(2, jnp.log, 3, 1.0)
