"""Observables against NumPy, autodiff and each other; gradients at coincident tokens; overflow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.sparse.csgraph

import transformer_flows as tfl
from transformer_flows import theory

from ..problems import MultiHead

TIED = MultiHead(n=9, d=3, h=4, sign=-1)
GENERAL = MultiHead(n=9, d=3, h=4)
ZERO = jnp.asarray(0.0)


@eqx.filter_jit
def measure(observable, x, flow):
    return observable(ZERO, x, flow)


def numpy_sums(problem):
    x, B = np.asarray(problem.x0), np.asarray(problem.heads.score)
    kernel = np.exp(np.einsum("hij,nj,mi->hnm", B, x, x))
    return x, B, kernel


@pytest.mark.parametrize("problem", [TIED, GENERAL], ids=["tied", "general"])
def test_energy_and_its_logarithm(problem):
    _, _, kernel = numpy_sums(problem)
    energy = measure(tfl.Energy(), problem.x0, problem.flow)
    np.testing.assert_allclose(energy, 0.5 * kernel.mean(), rtol=1e-13)
    np.testing.assert_allclose(measure(tfl.LogEnergy(), problem.x0, problem.flow), np.log(energy), rtol=1e-12)


@pytest.mark.parametrize("problem", [TIED, GENERAL], ids=["tied", "general"])
def test_gradient_of_the_energy(problem):
    """n times the projected autodiff gradient of E is ∇δE/δμ; and S = −dE/dt at fixed weights."""
    flow, x = problem.flow, problem.x0

    @jax.jit
    def routes(x):
        energy = lambda x: tfl.Energy()(ZERO, x, flow)
        heads = flow.heads(ZERO, x)
        by_hand = flow.energy_gradient(heads, flow.measure(x), flow.tilt(heads, flow.measure(x)))
        by_autodiff = flow.manifold.project(x, x.shape[0] * jax.grad(energy)(x))
        rate = jax.jvp(energy, (x,), (flow(ZERO, x),))[1]
        return by_hand, by_autodiff, tfl.Dissipation()(ZERO, x, flow), -rate

    by_hand, by_autodiff, dissipation, loss = routes(x)
    np.testing.assert_allclose(by_hand, by_autodiff, atol=1e-13)
    np.testing.assert_allclose(dissipation, loss, atol=1e-13)


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
    np.testing.assert_allclose(measure(tfl.Slope(), TIED.x0, TIED.flow), G, rtol=1e-12)
    np.testing.assert_allclose(measure(tfl.Dissipation(), TIED.x0, TIED.flow), S, rtol=1e-12)
    assert abs(G / S - 1) > 0.05
    one = MultiHead(n=9, h=1, sign=-1)
    np.testing.assert_allclose(
        measure(tfl.Slope(), one.x0, one.flow), measure(tfl.Dissipation(), one.x0, one.flow), rtol=1e-12
    )


def test_energies_do_not_overflow_in_logarithm():
    """Fault 8: β = 100 in float32, all tokens equal: log E = β − log 2; β = 1e4 has a finite gradient."""
    x = jnp.broadcast_to(jnp.array([[0.6, 0.8, 0.0]], "float32"), (16, 3))
    flow = lambda beta: tfl.AttentionFlow(tfl.Sphere(3), tfl.Heads.identity(3, beta=beta))
    log_energy = lambda x, beta: measure(tfl.LogEnergy(), x, flow(beta))
    np.testing.assert_allclose(log_energy(x, 100.0), 100 - np.log(2), rtol=1e-6)
    assert np.isinf(measure(tfl.Energy(), x, flow(100.0)))
    assert np.isfinite(jax.jit(jax.grad(log_energy))(tfl.Sphere(3).uniform(jr.key(0), 16), 1e4)).all()


def test_uniform_measure():
    """Spec values: ½ sinh 1 for D = I, and 0.83092 in the stationary law of the heads (and Monte Carlo)."""
    np.testing.assert_allclose(theory.uniform_energy(), 0.58760, atol=5e-6)
    np.testing.assert_allclose(theory.uniform_energy_ornstein_uhlenbeck(), 0.83092, atol=5e-6)
    np.testing.assert_allclose(theory.uniform_energy_ornstein_uhlenbeck(noise=0.0), theory.uniform_energy(), rtol=1e-12)
    x = tfl.Sphere(3).uniform(jr.key(0), 3000)
    flow = tfl.AttentionFlow(tfl.Sphere(3), tfl.Heads.identity(3, beta=1.0))
    assert abs(measure(tfl.Energy(), x, flow) - theory.uniform_energy()) < 0.01
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
        measure(tfl.OrderParameter(), TIED.x0, TIED.flow), np.linalg.norm(x.mean(axis=0)), rtol=1e-13
    )
    np.testing.assert_allclose(measure(tfl.Diameter(), TIED.x0, TIED.flow), np.arccos(cosines.min()), rtol=1e-10)
    quantiles = measure(tfl.PairwiseCosine(quantiles=(0.1, 0.5)), TIED.x0, TIED.flow)
    np.testing.assert_allclose(quantiles, np.quantile(cosines, [0.1, 0.5]), rtol=1e-12)


def test_gradients_at_coincident_tokens_are_finite():
    """Fault 2: all tokens equal, and an order parameter of exactly 0."""
    same = jnp.broadcast_to(TIED.x0[:1], TIED.x0.shape)
    opposite = jnp.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    for observable in (tfl.Diameter(), tfl.OrderParameter(), tfl.Energy(), tfl.Slope(), tfl.ClusterCount()):
        for x in (same, opposite[:, :]):
            f = lambda x: measure(observable, x, TIED.flow)  # noqa: B023
            reverse, forward = jax.jit(lambda x: (jax.jacrev(f)(x), jax.jacfwd(f)(x)))(x)  # noqa: B023
            assert np.isfinite(reverse).all()
            np.testing.assert_allclose(reverse, forward, atol=1e-12)


def test_clusters_are_connected_components():
    rng = np.random.default_rng(3)
    for n, radius in [(40, 0.3), (40, 0.6), (1, 0.1), (2, 0.1)]:
        x = rng.normal(size=(n, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        graph = np.linalg.norm(x[:, None] - x[None], axis=-1) < radius
        expected = scipy.sparse.csgraph.connected_components(graph)[0]
        assert measure(tfl.ClusterCount(radius=radius), jnp.asarray(x), TIED.flow) == expected
    chain = jnp.asarray([[np.cos(a), np.sin(a), 0.0] for a in np.random.default_rng(0).permutation(60) * 0.09])
    assert measure(tfl.ClusterCount(radius=0.1), chain, TIED.flow) == 1


def test_nothing_in_padding_reaches_an_energy():
    """Huge numbers and NaN in tokens that do not exist change neither values nor gradients."""
    flow = tfl.AttentionFlow(tfl.Sphere(3), TIED.heads, mask=tfl.Padding(jnp.arange(len(TIED.x0)) > 0))
    observables = (tfl.Energy(), tfl.LogEnergy(), tfl.Slope(), tfl.Dissipation())
    total = eqx.filter_jit(
        eqx.filter_value_and_grad(lambda x: sum(observable(ZERO, x, flow) for observable in observables))
    )
    value, gradient = total(TIED.x0)
    for padding in (1e200, jnp.nan):
        other, slope = total(TIED.x0.at[0].set(padding))
        np.testing.assert_allclose(other, value, rtol=1e-14)
        np.testing.assert_allclose(slope, gradient, atol=1e-14)
        assert not np.any(slope[0])


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: tfl.ClusterCount(jnp.nan), "radius"),
        (lambda: tfl.ClusterCount(-1.0), "radius"),
        (lambda: tfl.ClusterCount(jnp.array([0.1, 0.2])), "radius"),
        (lambda: tfl.PairwiseCosine([2.0, -1.0]), "quantiles"),
        (lambda: tfl.PairwiseCosine([]), "quantiles"),
    ],
)
def test_observables_of_nothing_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
