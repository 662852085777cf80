"""Noise on the value matrix: exponents of two tokens on both sides of the threshold, and the law of one token."""

import diffrax
import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array, Bool

import transformer_flows as tfl
from transformer_flows import theory

D, SIGMA = 5, 1.0
SPHERE = tfl.Sphere(D)


TS = jnp.linspace(0.0, 1.0, 51)


def value_noise(beta=1.0, strength=SIGMA, value=0.0, noise=None, **options):
    flow = tfl.AttentionFlow(SPHERE, tfl.Heads(beta * jnp.eye(D), value * jnp.eye(D)), **options)
    return tfl.ValueNoiseFlow(flow, strength, noise=noise)


def averages(x, beta):
    weights = np.exp(beta * x @ x.T)
    return weights @ x / weights.sum(axis=1, keepdims=True)


def test_a_step_is_its_definition(key):
    """Two different heads: x + (P Σ v m_h/2 − ½(d−1)σ²|m|²x)h + σ P dW m with m = Σ m_h/2, back on the sphere."""
    ts, eye = jnp.array([0.0, 0.1]), jnp.eye(D)
    heads = tfl.Heads(jnp.stack([eye, 0.3 * eye]), jnp.stack([0.4 * eye, -0.9 * eye]))
    flow = tfl.realise(tfl.ValueNoiseFlow(tfl.AttentionFlow(SPHERE, heads), 0.7), key, ts)
    x0 = SPHERE.uniform(key, 4)
    x, dw = np.asarray(x0), np.asarray(flow.noise.values[1] - flow.noise.values[0])
    of_heads = averages(x, 1.0), averages(x, 0.3)
    m = (of_heads[0] + of_heads[1]) / 2
    assert dw.shape == (D, D)
    moved = 0.1 * (0.4 * of_heads[0] - 0.9 * of_heads[1]) / 2 + 0.7 * m @ dw.T
    moved -= (moved * x).sum(axis=1, keepdims=True) * x
    y = x + moved - 0.1 * 0.5 * (D - 1) * 0.7**2 * (m**2).sum(axis=1, keepdims=True) * x
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    np.testing.assert_allclose(tfl.solve(flow, x0, ts).states[-1], y, atol=1e-14)


def cosine_law(rho, beta, d):
    """Drift and variance of the cosine of two tokens per unit of time, for σ = 1, by Itô's formula.

    With p, q the softmax weights of oneself and the other, |m|² = p² + q² + 2pqρ and c = ⟨m_x, m_y⟩ = (p² + q²)ρ + 2pq:
    drift c(d−2+ρ²) − (d−1)|m|²ρ, variance 2(1−ρ²)(|m|² − ρc).
    """
    p = 1 / (1 + np.exp(beta * (rho - 1)))
    q = 1 - p
    square, c = p * p + q * q + 2 * p * q * rho, (p * p + q * q) * rho + 2 * p * q
    return c * (d - 2 + rho**2) - (d - 1) * square * rho, 2 * (1 - rho**2) * (square - rho * c)


@pytest.mark.parametrize("d", [2, 5, 20])
def test_exponents_are_those_of_the_cosine(d):
    """With η = 1 ± ρ, dη = aη dt + √b η dw near 0, and the distance √(2η) has the exponent ½(a − b/2)."""
    eta = 1e-6
    for beta in (0.0, 0.8, 3.0):
        drift, variance = cosine_law(eta - 1, beta, d)
        exponent = 0.5 * (drift / eta - 0.5 * variance / eta**2)
        np.testing.assert_allclose(theory.value_noise_exponent_near_antipodes(2.0, beta, d), 4 * exponent, atol=1e-3)
        drift, variance = cosine_law(1 - eta, beta, d)
        exponent = 0.5 * (-drift / eta - 0.5 * variance / eta**2)
        np.testing.assert_allclose(theory.value_noise_exponent_near_coincidence(2.0, d), 4 * exponent, atol=1e-3)


def test_antipodal_pairs_attract_beyond_the_threshold_and_close_ones_always(key):
    """From 1e-6 away, for β on both sides of it: the mean exponent of an ensemble, and its standard error.

    Euler's steps of this length err by 0.05, which falls like the step: less than the standard errors asked for.
    """
    of_start, of_near, of_noise = jr.split(key, 3)
    betas, signs, members, horizon = jnp.array([0.5, 1.5, 0.5]), jnp.array([-1, -1, 1]), 150, 4.0
    x = SPHERE.uniform(of_start, 1)
    near = SPHERE.retract(x + 1e-6 * SPHERE.project(x, jr.normal(of_near, (1, D))))
    pairs = jnp.stack([jnp.concatenate([x, sign * near]) for sign in signs])
    flows = eqx.filter_vmap(value_noise)(jnp.repeat(betas, members))
    ends = tfl.solve_ensemble(
        flows,
        jnp.repeat(pairs, members, axis=0),
        [0.0, horizon],
        jr.split(of_noise, 3 * members),
        in_axes=(0, 0),
        dt=0.02,
    ).states
    distance = jnp.linalg.norm(ends[:, :, 0] - jnp.repeat(signs, members)[:, None, None] * ends[:, :, 1], axis=-1)
    exponents = np.asarray(jnp.log(distance[:, 1] / distance[:, 0]) / horizon).reshape(3, members)
    mean, error = exponents.mean(axis=1), exponents.std(axis=1) / members**0.5
    antipodes = np.asarray(theory.value_noise_exponent_near_antipodes(SIGMA, betas[:2], D))
    np.testing.assert_array_equal(antipodes < 0, np.cosh(betas[:2]) ** 2 > (D - 1) / 2)
    wanted = np.append(antipodes, theory.value_noise_exponent_near_coincidence(SIGMA, D))
    assert (3.5 * error < np.abs(wanted) / 2).all() and (np.abs(mean - wanted) < 3.5 * error).all()
    assert antipodes[0] > 0 > antipodes[1]


def test_one_token_forgets_its_start_at_the_known_rate(key):
    """E⟨X_t, X_0⟩ = e^{−½(d−1)σ²t}: on its own, a token is a Brownian motion on the sphere."""
    of_start, of_noise = jr.split(key)
    x0, members = SPHERE.uniform(of_start, 1), 400
    ends = tfl.solve_ensemble(value_noise(strength=0.6), x0, TS[::50], jr.split(of_noise, members), dt=0.02).states
    cosine = ends[:, -1, 0] @ x0[0]
    error = float(jnp.std(cosine)) / members**0.5
    assert abs(float(jnp.mean(cosine)) - np.exp(-0.5 * (D - 1) * 0.36)) < 3.5 * error < 0.1


def test_equal_tokens_stay_equal_to_the_last_bit(key, dtype):
    x0 = SPHERE.uniform(key, 5).astype(dtype)
    x0 = x0.at[3].set(x0[1])
    flow = tfl.realise(value_noise(), key, TS)
    observe = {"order": tfl.OrderParameter(), "energy": tfl.Energy()}
    solution = tfl.solve(flow, x0, TS, observe=observe)
    assert solution.status == "successful" and solution.states.dtype == dtype
    assert (solution.states[:, 3] == solution.states[:, 1]).all()
    assert (solution.states[-1, 3] != solution.states[-1, 0]).any()
    np.testing.assert_allclose(solution.observed["energy"][0], tfl.Energy()(0.0, x0, flow.flow), rtol=1e-5)


class Absent(tfl.AbstractMask):
    """Tokens that do not exist, though they may see the others."""

    existing: Bool[Array, "n"]

    def __call__(self, query, key):
        return self.existing[key]


@pytest.mark.parametrize("mask", [tfl.Padding, Absent])
def test_tokens_that_do_not_exist_are_not_moved(mask, key):
    """In the drift and in the noise, whatever they see; and nothing sees them."""
    x0 = SPHERE.uniform(key, 4)
    dw = jr.normal(key, (D, D))
    moves = eqx.filter_jit(lambda flow, x: (flow(0.0, x), flow.diffusion(0.0, x, dw)))
    padded = moves(value_noise(value=0.5, mask=mask(jnp.arange(4) < 3)), x0)
    for with_, without in zip(padded, moves(value_noise(value=0.5), x0[:3]), strict=True):
        np.testing.assert_allclose(with_[:3], without, atol=1e-14)
        assert not with_[3].any()


def test_what_does_not_fit_is_refused(key):
    for solver in (diffrax.Heun(), diffrax.EulerHeun(), diffrax.ItoMilstein()):
        with pytest.raises(ValueError, match=r"ValueNoiseFlow is meant in the sense of Itô.*Take Euler\(\)"):
            tfl.solve(tfl.realise(value_noise(), key, TS), SPHERE.uniform(key, 2), TS, solver=solver)
    with pytest.raises(ValueError, match=r"takes noise of shape \(5, 5\); the noise given has \(5,\)"):
        value_noise(noise=tfl.Brownian(jnp.zeros(5)))
    with pytest.raises(ValueError, match="strength must be one finite number of at least 0"):
        value_noise(strength=-1.0)
    plane = tfl.Euclidean(2)
    with pytest.raises(ValueError, match="must move on a sphere"):
        tfl.ValueNoiseFlow(tfl.AttentionFlow(plane, tfl.Heads.identity(2, beta=1.0)), 1.0)
