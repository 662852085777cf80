"""Placements of the normalisation: their table of speeds, tokens in R^d, and contraction near one cluster."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array, Bool

import transformer_flows as tfl

D, ALPHA = 3, 0.7
SPHERE = tfl.Sphere(D)
PLACEMENTS = {
    "post": tfl.PostNorm(),
    "sqrt": tfl.SqrtPostNorm(),
    "nGPT": tfl.NGPT(ALPHA),
    "pre": tfl.PreNorm(),
    "peri": tfl.PeriNorm(),
    "LN-Scaling": tfl.LNScaling(),
}


def normalised(name, heads=tfl.Heads.identity(D, beta=2.0), **options):
    return tfl.NormalisedFlow(tfl.AttentionFlow(SPHERE, heads, **options), PLACEMENTS[name])


@pytest.mark.parametrize("name", PLACEMENTS)
def test_speeds_are_those_of_the_table(name):
    """θ' = P A/s and r' by their formulas; where only the input is normalised, (rθ)' is A over a factor, in R^d."""
    rng = np.random.default_rng(3)
    t, score, value = 2.3, rng.normal(size=(D, D)), rng.normal(size=(D, D))
    theta = rng.normal(size=(5, D))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    r = rng.uniform(0.5, 2.0, size=5)
    weights = np.exp(theta @ score.T @ theta.T)
    A = weights @ theta @ value.T / weights.sum(axis=1, keepdims=True)
    length, along, root = np.linalg.norm(A, axis=1), (A * theta).sum(axis=1), np.sqrt(t + 1)
    s, growth = {
        "post": (1, 0),
        "sqrt": (root, 0),
        "nGPT": (length / ALPHA, 0),
        "pre": (r, along),
        "peri": (r * length, along / length),
        "LN-Scaling": (r * root, along / root),
    }[name]
    flow = normalised(name, tfl.Heads(score, value))
    found = eqx.filter_jit(flow)(t, flow.manifold.state(jnp.asarray(theta), jnp.asarray(r)))
    np.testing.assert_allclose(found.theta, (A - along[:, None] * theta) / np.reshape(s, (-1, 1)), atol=1e-13)
    np.testing.assert_allclose(found.radius, np.broadcast_to(growth, 5), atol=1e-13)
    if name in ("pre", "peri", "LN-Scaling"):
        moved = r[:, None] * found.theta + found.radius[:, None] * theta
        np.testing.assert_allclose(moved, A / np.reshape(s / r, (-1, 1)), atol=1e-13)


LAWS = {
    "post": (6.0, "exponential", 2),
    "sqrt": (40.0, "root", 4),
    "nGPT": (8.0, "exponential", 2 * ALPHA),
    "pre": (1e4, "power", 2),
    "peri": (1e4, "power", 2),
    "LN-Scaling": (1e5, "power", 1),
}


@pytest.mark.parametrize("name", LAWS)
def test_contraction_near_one_cluster(name, key):
    """1 − cos of the tokens over time: by the law of the placement, and with the exponent that its docstring states."""
    horizon, kind, exponent = LAWS[name]
    flow = normalised(name)
    of_centre, of_tokens = jr.split(key)
    cloud = SPHERE.retract(SPHERE.uniform(of_centre, 1) + 1e-3 * jr.normal(of_tokens, (4, D)))
    ts = np.concatenate([[0.0], np.geomspace(horizon / 20, horizon, 12)])
    states = tfl.solve(flow, flow.manifold.state(cloud, 0.8), ts, rtol=1e-10, atol=1e-13).states
    distance = jnp.linalg.norm(states.theta[:, 0] - states.theta[:, 1], axis=-1)
    law = np.array([flow.placement.contraction(t, 0.8) for t in ts])
    np.testing.assert_allclose(distance / distance[0], law, rtol=2e-4)
    gap = np.log(0.5 * distance[1:] ** 2)
    clock = {"exponential": ts[1:], "root": np.sqrt(ts[1:] + 1), "power": np.log(ts[1:])}[kind]
    np.testing.assert_allclose(-(gap[-1] - gap[-4]) / (clock[-1] - clock[-4]), exponent, rtol=0.02)


def test_pre_norm_is_a_flow_of_tokens_in_space(key, dtype):
    """x' = A(x/|x|): Euler's steps by hand in R^d, against steps of directions and lengths; equal to O(h)."""
    x0 = 1.5 * jr.normal(key, (4, D), dtype)
    flow = normalised("pre")
    start = flow.manifold.of(x0)
    np.testing.assert_allclose(start.tokens, x0, rtol=1e-5)
    end = tfl.solve(flow, start, [0.0, 1.0], dt=0.01).states
    assert end.theta.dtype == end.radius.dtype == dtype
    x = np.asarray(x0, float)
    for _ in range(1000):
        theta = x / np.linalg.norm(x, axis=1, keepdims=True)
        weights = np.exp(2 * theta @ theta.T)
        x = x + 0.001 * weights @ theta / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(end.tokens[-1], x, atol=1e-3)


def test_a_token_that_reaches_the_origin_ends_the_solve():
    """Under repulsion alone in its direction, r' = −1: the length 0.5 is used up at time 0.5."""
    flow = normalised("pre", tfl.Heads(jnp.eye(D), -jnp.eye(D)))
    start = flow.manifold.state(jnp.array([[1.0, 0.0, 0.0]]), 0.5)
    solution = tfl.solve(flow, start, [0.0, 0.4, 1.0], dt=0.04)
    assert solution.status == "non_finite" and 0.4 < solution.end_time < 0.6
    np.testing.assert_allclose(solution.states.radius[1], 0.1, atol=1e-12)


class Absent(tfl.AbstractMask):
    """Tokens that do not exist, though they may see the others."""

    existing: Bool[Array, "n"]

    def __call__(self, query, key):
        return self.existing[key]


@pytest.mark.parametrize("mask", [tfl.Padding, Absent])
def test_tokens_that_do_not_exist_neither_move_nor_grow(mask, key):
    theta = SPHERE.uniform(key, 4)
    bare = normalised("peri")
    padded = normalised("peri", mask=mask(jnp.arange(4) < 3))
    found = eqx.filter_jit(padded)(0.0, padded.manifold.state(theta))
    alone = eqx.filter_jit(bare)(0.0, bare.manifold.state(theta[:3]))
    np.testing.assert_allclose(found.theta[:3], alone.theta, atol=1e-14)
    np.testing.assert_allclose(found.radius[:3], alone.radius, atol=1e-14)
    assert not found.theta[3].any() and found.radius[3] == 0
    # heads of value 0 add nothing, which has no direction
    still = normalised("peri", tfl.Heads(jnp.eye(D), jnp.zeros((D, D))))
    assert not eqx.filter_jit(still)(0.0, still.manifold.state(theta)).theta.any()


def test_what_is_no_state_is_refused(key):
    theta = SPHERE.uniform(key, 3)
    flow = normalised("pre")
    with pytest.raises(ValueError, match="radius must be positive and finite"):
        flow.manifold.state(theta, 0.0)
    with pytest.raises(ValueError, match=r"radius must be one number or of shape \(3,\); got \(2,\)"):
        flow.manifold.state(theta, jnp.ones(2))
    with pytest.raises(ValueError, match="theta must lie on Sphere"):
        flow.manifold.state(2 * theta)
    with pytest.raises(ValueError, match="theta must lie on Sphere"):
        flow.manifold.of(jnp.zeros((1, D)))
    with pytest.raises(ValueError, match="must be a state of NormalisedFlow"):
        tfl.solve(flow, theta, [0.0, 1.0])
    with pytest.raises(ValueError, match="must move on a sphere"):
        tfl.NormalisedFlow(tfl.AttentionFlow(tfl.Euclidean(3), tfl.Heads.identity(3, beta=1.0)), tfl.PreNorm())
    with pytest.raises(ValueError, match="alpha must be one positive finite number"):
        tfl.NGPT(0.0)
