"""Linearised flows: exponents that are known exactly, and derivatives by finite differences."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl
from transformer_flows import theory


def test_vectors_are_differences_of_flows(key):
    """Over one interval the frame spans what finite differences of the solution span, with the same volume."""
    sphere = tfl.Sphere(3)
    flow = tfl.AttentionFlow(sphere, tfl.Heads.identity(3, beta=2.0))
    x0, ts = sphere.uniform(key, 4), jnp.array([0.0, 0.5])
    tangent = tfl.TangentFlow(flow)
    frame = tangent.manifold.frame(jr.fold_in(key, 1), x0, 2)
    np.testing.assert_allclose(jnp.einsum("knd,nd->kn", frame.vectors, x0), 0, atol=1e-14)
    end = jax.tree.map(lambda leaf: leaf[-1], tfl.solve(tangent, frame, ts, dt=0.05).states)
    adaptive = tfl.solve(tangent, frame, ts, rtol=1e-9, atol=1e-11).states
    np.testing.assert_allclose(adaptive.growth[-1], end.growth, atol=1e-6)
    final = lambda x: tfl.solve(flow, x, ts, dt=0.05).states[-1]
    np.testing.assert_allclose(end.x, final(x0), atol=1e-14)
    step = 1e-5
    images = jnp.stack([(final(x0 + step * v) - final(x0 - step * v)) / (2 * step) for v in frame.vectors])
    images = images.reshape(2, -1)
    # (images) = (vectors) R: the Gram determinant is that of R, and projections leave nothing over
    vectors = end.vectors.reshape(2, -1)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(2), atol=1e-13)
    np.testing.assert_allclose(images @ vectors.T @ vectors, images, atol=1e-8)
    np.testing.assert_allclose(0.5 * jnp.linalg.slogdet(images @ images.T)[1], end.growth.sum(), atol=1e-8)
    np.testing.assert_allclose(jnp.log(jnp.linalg.norm(images[0])), end.growth[0], atol=1e-8)


def test_vectors_under_noise_are_differences_of_paths(key):
    """On one path of the noise: the same frame from finite differences, with drift and noise of one size."""
    sphere = tfl.Sphere(3)
    kernel = theory.ActivationKernel(jnp.tanh, 3, 1.0, 0.1, 0.1)
    flow = tfl.CommonNoiseFlow(
        tfl.AttentionFlow(sphere, tfl.Heads.identity(3, beta=2.0)), tfl.GaussianField(kernel, tfl.Harmonics(3))
    )
    x0, ts = sphere.uniform(key, 3), jnp.linspace(0.0, 0.4, 5)
    drawn = tfl.realise(flow, key, ts)
    tangent = tfl.NoisyTangentFlow(drawn)
    frame = tangent.manifold.frame(jr.fold_in(key, 1), x0, 2)
    solution = tfl.solve(tangent, frame, ts)
    end = jax.tree.map(lambda leaf: leaf[-1], solution.states)
    final = jax.jit(lambda x: tfl.solve(drawn, x, ts).states[-1])
    np.testing.assert_allclose(end.x, final(x0), atol=1e-14)
    step = 1e-5
    images = jnp.stack([(final(x0 + step * v) - final(x0 - step * v)) / (2 * step) for v in frame.vectors])
    images, vectors = images.reshape(2, -1), end.vectors.reshape(2, -1)
    np.testing.assert_allclose(images @ vectors.T @ vectors, images, atol=1e-8)
    np.testing.assert_allclose(jnp.log(jnp.linalg.norm(images[0])), end.growth[0], atol=1e-8)
    assert abs(float(end.growth[0] - tfl.solve(tangent.quiet, frame, ts, dt=0.1).states.growth[-1, 0])) > 0.01
    # without its noise it is the linearised flow without noise, as observables see it
    for quiet, drift in zip(*(jax.tree.leaves(f(0.1, frame)) for f in (tangent.quiet, tangent)), strict=True):
        np.testing.assert_array_equal(quiet, drift)


def test_exponents_of_a_cluster_under_attention(key):
    """At one cluster with B = βI, V = I tokens relax to their mean at rate 1, the mean stays: −1, 0."""
    sphere = tfl.Sphere(3)
    flow = tfl.TangentFlow(tfl.AttentionFlow(sphere, tfl.Heads.identity(3, beta=1.5)))
    x0 = jnp.tile(sphere.uniform(key, 1), (3, 1))
    solution = tfl.solve(flow, flow.manifold.frame(jr.fold_in(key, 1), x0, 6), jnp.array([0.0, 30.0]), dt=0.02)
    np.testing.assert_allclose(solution.states.growth[-1] / 30.0, [0, 0, -1, -1, -1, -1], atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("d", [3, 5])
def test_lyapunov_exponents_under_common_noise(d, key):
    kernel = theory.ActivationKernel(jnp.tanh, d, 0.5, 0.02, 0.02)
    field = tfl.GaussianField(kernel, tfl.Harmonics(6) if d == 3 else tfl.Monomials(4))
    flow = tfl.NoisyTangentFlow(tfl.CommonNoiseFlow(tfl.RestFlow(tfl.Sphere(d)), field))
    frame = flow.manifold.frame(jr.fold_in(key, 1), tfl.Sphere(d).uniform(key, 1), d - 1)
    horizon, members = 60.0, 24
    solution = tfl.solve_ensemble(flow, frame, jnp.array([0.0, horizon]), jr.split(key, members), dt=0.02)
    rates = solution.states.growth[:, -1] / horizon
    deviation = jnp.std(rates, axis=0) / members**0.5
    assert (deviation < 0.03).all()
    assert (jnp.abs(jnp.mean(rates, axis=0) - theory.lyapunov_exponents(kernel)) < 3.5 * deviation + 0.01).all()


def test_wrong_flows_and_frames_are_refused(key):
    sphere = tfl.Sphere(3)
    rest = tfl.RestFlow(sphere)
    field = tfl.GaussianField(theory.ActivationKernel(jnp.tanh, 3, 0.5), tfl.Harmonics(2))
    noisy = tfl.CommonNoiseFlow(rest, field)
    with pytest.raises(ValueError, match="See NoisyTangentFlow"):
        tfl.TangentFlow(noisy)
    gram = tfl.CommonNoiseFlow(rest, tfl.GaussianField(field.kernel, tfl.Gram(1)))
    with pytest.raises(ValueError, match="take modes for its field"):
        tfl.NoisyTangentFlow(gram)
    with pytest.raises(ValueError, match="moves something else"):
        tfl.TangentFlow(tfl.TangentFlow(rest))
    bundle = tfl.TangentFlow(rest).manifold
    assert bundle.frame(key, sphere.uniform(key, 6), 12).vectors.shape == (12, 6, 3)  # one key for both will do
    with pytest.raises(ValueError, match="tangent directions of the tokens; got 3"):
        bundle.frame(jr.fold_in(key, 1), sphere.uniform(key, 1), 3)
    with pytest.raises(ValueError, match="x must lie on Sphere"):
        bundle.frame(jr.fold_in(key, 1), 2 * sphere.uniform(key, 1), 2)
    with pytest.raises(ValueError, match="must be a state of TangentFlow"):
        tfl.solve(tfl.TangentFlow(rest), sphere.uniform(key, 1), jnp.array([0.0, 1.0]), dt=0.1)
