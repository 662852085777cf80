"""Observables against NumPy, autodiff and each other; gradients at coincident tokens; overflow."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.sparse.csgraph
import transformer_flows as tfl
from transformer_flows import theory
from transformer_flows.observables.energy import energy_gradient

from ..problems import MultiHead

TIED = MultiHead(n=9, d=3, h=4, sign=-1)
GENERAL = MultiHead(n=9, d=3, h=4)
ZERO = jnp.asarray(0.0)


def numpy_sums(problem):
    x, B = np.asarray(problem.x0), np.asarray(problem.heads.score)
    kernel = np.exp(np.einsum("hij,nj,mi->hnm", B, x, x))
    return x, B, kernel


@pytest.mark.parametrize("problem", [TIED, GENERAL], ids=["tied", "general"])
def test_energy_and_its_logarithm(problem):
    _, _, kernel = numpy_sums(problem)
    energy = tfl.Energy()(ZERO, problem.x0, problem.flow)
    np.testing.assert_allclose(energy, 0.5 * kernel.mean(), rtol=1e-13)
    np.testing.assert_allclose(tfl.LogEnergy()(ZERO, problem.x0, problem.flow), np.log(energy), rtol=1e-12)


@pytest.mark.parametrize("problem", [TIED, GENERAL], ids=["tied", "general"])
def test_gradient_of_the_energy(problem):
    """n times the projected autodiff gradient of E is ∇δE/δμ; and S = −dE/dt at fixed weights."""
    flow, x = problem.flow, problem.x0
    energy = lambda x: tfl.Energy()(ZERO, x, flow)
    heads = flow.heads(ZERO, x)
    expected = flow.manifold.project(x, len(x) * jax.grad(energy)(x))
    np.testing.assert_allclose(energy_gradient(flow, x, heads, flow.tilt(heads, x, x)), expected, atol=1e-13)
    rate = jax.jvp(energy, (x,), (flow(ZERO, x),))[1]
    np.testing.assert_allclose(tfl.Dissipation()(ZERO, x, flow), -rate, atol=1e-13)


def test_slope_and_dissipation_from_their_definitions():
    """G² and S of spec/1, written out in NumPy; they differ for several heads and agree for one."""
    x, B, kernel = numpy_sums(TIED)
    Z = kernel.sum(axis=2)
    w = np.einsum("hnm,hij,mj->hni", kernel, B, x) / Z[..., None]
    w -= np.einsum("hni,ni->hn", w, x)[..., None] * x
    n = len(x)
    mobility = 1 / np.mean(n / Z, axis=0)
    velocity = -w.mean(axis=0)
    G = np.mean(mobility * (velocity**2).sum(axis=1))
    S = np.mean(((Z[..., None] / n * w).mean(axis=0) * w.mean(axis=0)).sum(axis=1))
    np.testing.assert_allclose(tfl.Slope()(ZERO, TIED.x0, TIED.flow), G, rtol=1e-12)
    np.testing.assert_allclose(tfl.Dissipation()(ZERO, TIED.x0, TIED.flow), S, rtol=1e-12)
    assert abs(G / S - 1) > 0.05
    one = MultiHead(n=9, h=1, sign=-1)
    np.testing.assert_allclose(
        tfl.Slope()(ZERO, one.x0, one.flow), tfl.Dissipation()(ZERO, one.x0, one.flow), rtol=1e-12
    )


def test_energies_do_not_overflow_in_logarithm():
    """Fault 8: β = 100 in float32, all tokens equal: log E = β − log 2; β = 1e4 has a finite gradient."""
    x = jnp.broadcast_to(jnp.array([[0.6, 0.8, 0.0]], "float32"), (16, 3))
    flow = lambda beta: tfl.AttentionFlow(tfl.Sphere(3), tfl.Heads.identity(3, beta=beta))
    log_energy = lambda x, beta: tfl.LogEnergy()(ZERO, x, flow(beta))
    np.testing.assert_allclose(log_energy(x, 100.0), 100 - np.log(2), rtol=1e-6)
    assert np.isinf(tfl.Energy()(ZERO, x, flow(100.0)))
    assert np.isfinite(jax.grad(log_energy)(tfl.Sphere(3).uniform(jr.key(0), 16), 1e4)).all()


def test_uniform_measure():
    """Spec values: ½ sinh 1 for D = I, and 0.83092 in the stationary Ornstein–Uhlenbeck law (Monte Carlo over heads)."""
    np.testing.assert_allclose(theory.uniform_energy(), 0.58760, atol=5e-6)
    np.testing.assert_allclose(theory.uniform_energy_ornstein_uhlenbeck(), 0.83092, atol=5e-6)
    np.testing.assert_allclose(theory.uniform_energy_ornstein_uhlenbeck(noise=0.0), theory.uniform_energy(), rtol=1e-12)
    x = tfl.Sphere(3).uniform(jr.key(0), 3000)
    flow = tfl.AttentionFlow(tfl.Sphere(3), tfl.Heads.identity(3, beta=1.0))
    assert abs(tfl.Energy()(ZERO, x, flow) - theory.uniform_energy()) < 0.01
    Z = np.random.default_rng(0).normal(size=(40_000, 3, 3))
    D = np.eye(3) + 0.5 * (Z + Z.transpose(0, 2, 1))
    u = np.random.default_rng(1).normal(size=(2, 40_000, 3))
    u /= np.linalg.norm(u, axis=-1, keepdims=True)
    samples = 0.5 * np.exp(np.einsum("ni,nij,nj->n", u[0], D, u[1]))
    error = 3 * samples.std() / 200
    assert abs(samples.mean() - theory.uniform_energy_ornstein_uhlenbeck()) < error < 0.05


def test_spread_observables():
    x = np.asarray(TIED.x0)
    cosines = np.clip(x @ x.T, -1, 1)[np.triu_indices(len(x), 1)]
    np.testing.assert_allclose(
        tfl.OrderParameter()(ZERO, TIED.x0, TIED.flow), np.linalg.norm(x.mean(axis=0)), rtol=1e-13
    )
    np.testing.assert_allclose(tfl.Diameter()(ZERO, TIED.x0, TIED.flow), np.arccos(cosines.min()), rtol=1e-10)
    quantiles = tfl.PairwiseCosine(quantiles=(0.1, 0.5))(ZERO, TIED.x0, TIED.flow)
    np.testing.assert_allclose(quantiles, np.quantile(cosines, [0.1, 0.5]), rtol=1e-12)


def test_gradients_at_coincident_tokens_are_finite():
    """Fault 2: all tokens equal, and an order parameter of exactly 0."""
    same = jnp.broadcast_to(TIED.x0[:1], TIED.x0.shape)
    opposite = jnp.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    for observable in (tfl.Diameter(), tfl.OrderParameter(), tfl.Energy(), tfl.Slope(), tfl.ClusterCount()):
        for x in (same, opposite[:, :]):
            f = lambda x: observable(ZERO, x, TIED.flow)  # noqa: B023
            reverse, forward = jax.jacrev(f)(x), jax.jacfwd(f)(x)
            assert np.isfinite(reverse).all()
            np.testing.assert_allclose(reverse, forward, atol=1e-12)


def test_clusters_are_connected_components():
    rng = np.random.default_rng(3)
    for n, radius in [(40, 0.3), (40, 0.6), (1, 0.1), (2, 0.1)]:
        x = rng.normal(size=(n, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        graph = np.arccos(np.clip(x @ x.T, -1, 1)) < radius
        expected = scipy.sparse.csgraph.connected_components(graph)[0]
        assert tfl.ClusterCount(radius=radius)(ZERO, jnp.asarray(x), TIED.flow) == expected
    chain = jnp.asarray([[np.cos(a), np.sin(a), 0.0] for a in np.random.default_rng(0).permutation(60) * 0.09])
    assert tfl.ClusterCount(radius=0.1)(ZERO, chain, TIED.flow) == 1
