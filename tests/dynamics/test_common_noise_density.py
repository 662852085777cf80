"""The density under common noise: tokens on the same path, the heat equation of its mean, and what it refuses."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl
from transformer_flows import theory

# Of the field; a basis integrates exactly up to twice its degree, this one and the one of a gradient.
FIELD_DEGREE = 3
CIRCLE = tfl.FourierModes(20, exactness=44)
SPHERE = tfl.SphericalHarmonics(7, exactness=18)
T = 0.3


def field(d, hidden_bias=0.1):
    return tfl.GaussianField(theory.ActivationKernel(jnp.tanh, d, 0.5, hidden_bias, 0.1), tfl.Harmonics(FIELD_DEGREE))


def heads(d, value=1.0):
    return tfl.Heads(jnp.eye(d), value * jnp.eye(d))


def density_flow(basis, value=1.0, **options):
    quiet = tfl.DensityFlow(tfl.AttentionFlow(basis.manifold, heads(basis.manifold.d, value)), basis)
    return tfl.CommonNoiseDensityFlow(quiet, field(basis.manifold.d), **options)


def start(basis):
    x = basis.nodes
    c = basis.coefficients(jnp.exp(0.5 * x[:, 0] - 0.4 * x[:, 0] * x[:, 1]))
    return c / c[0]


def variance(basis):
    """k(1) of the field itself, which leaves out what its kernel has of higher degree."""
    own = field(basis.manifold.d)
    return float(jnp.sum(own.realisation.coefficients(own.kernel)))


def test_tokens_at_quantiles_follow_the_density_on_every_path(key):
    """Both methods agree to second order in the increments of one step: the gap falls like the step."""
    c = start(CIRCLE)
    noise = tfl.Brownian(field(2).like, unit=T / 32, depth=2)
    limit = density_flow(CIRCLE, noise=noise)
    tokens = tfl.CommonNoiseFlow(limit.flow.flow, limit.field, noise=noise)
    low, gaps = slice(1, 7), []
    for steps in (32, 128):
        ends, clouds = (
            tfl.solve_ensemble(flow, x0, [0.0, T], jr.split(key, 8), dt=T / steps).states[:, -1]
            for flow, x0 in ((limit, c), (tokens, CIRCLE.quantiles(c, 256)))
        )
        assert (ends[:, 0] == c[0]).all()
        moments = jax.vmap(CIRCLE.empirical)(clouds)
        gaps.append(float(jnp.sqrt(jnp.mean((moments - ends)[:, low] ** 2))))
        # the paths differ, and far from one another
        assert float(jnp.std(moments[:, low], axis=0).min()) > 20 * gaps[-1]
    assert 3 < gaps[0] / gaps[1] < 5.5, gaps


@pytest.mark.parametrize("basis", [CIRCLE, SPHERE], ids=["circle", "sphere"])
def test_one_step_moves_the_density_as_it_moves_its_points(basis, key):
    """The nodes with their shares of the density as tokens: the moments agree up to the third order in the noise."""
    flow = density_flow(basis, value=0.0)
    tokens = tfl.CommonNoiseFlow(tfl.RestFlow(basis.manifold), flow.field)
    c = start(basis) * (basis.degrees <= 2)  # one derivative along the field stays in the basis
    dw = jr.normal(key, flow.field.like.shape)

    def heun(diffusion, x, dw):
        first = diffusion(0.0, x, dw)
        return x + (first + diffusion(0.0, x + first, dw)) / 2

    @jax.jit
    def gap(size):
        moved = basis.manifold.retract(heun(tokens.diffusion, basis.nodes, size * dw))
        moments = jnp.matmul(basis.weights * flow.flow.density(c), basis(moved), precision="highest")
        return moments - heun(flow.diffusion, c, size * dw)

    large, small = (np.asarray(gap(size)) for size in (0.04, 0.02))
    assert np.linalg.norm(large) / np.linalg.norm(small) == pytest.approx(8, abs=1.2)
    assert 0 < np.linalg.norm(large) < 1e-3


@pytest.mark.parametrize("basis", [CIRCLE, SPHERE], ids=["circle", "sphere"])
def test_ito_s_drift_is_the_heat_equation(basis, key):
    """½ Σ_j Dg_j(c) g_j(c) = ½k(1)Δc over the modes g_j of the noise, for degrees that they do not move out."""
    flow = density_flow(basis).prepared()
    d, size = basis.manifold.d, flow.field.like.shape
    c = jr.normal(key, (basis.size,)) * (basis.degrees <= basis.degree - FIELD_DEGREE - 1)

    @jax.jit
    def drift(c):
        def along_itself(mode):
            moved = lambda c: flow.diffusion(0.0, c, mode)
            return jax.jvp(moved, (c,), (moved(c),))[1]

        modes = jnp.eye(size[0] * size[1]).reshape(-1, *size)
        return jnp.sum(jax.vmap(along_itself)(modes), axis=0) / 2

    degrees = basis.degrees
    heat = -0.5 * variance(basis) * degrees * (degrees + d - 2) * c
    np.testing.assert_allclose(drift(c), heat, atol=1e-12 * np.abs(heat).max())


def test_the_mean_over_the_noise_obeys_the_heat_equation(key):
    """E c_l(t) = c_l(0) e^{−l²k(1)t/2}; the steps of Heun's method have 1 − l²k(1)h/2 in its place."""
    basis, members, time = tfl.FourierModes(8, exactness=20), 1000, 1.0
    c = start(basis) * (basis.degrees <= 2)
    flow = density_flow(basis, value=0.0)
    ends = tfl.solve_ensemble(flow, c, [0.0, time], jr.split(key, members), dt=time / 40).states[:, -1]
    wanted = c * jnp.exp(-(basis.degrees**2) * variance(basis) * time / 2)
    deviation = jnp.std(ends, axis=0) / members**0.5
    for k in (1, 2, 3, 4):
        assert jnp.abs(jnp.mean(ends[:, k]) - wanted[k]) < 3 * deviation[k] + 1e-3, k
    assert (jnp.abs(wanted - c)[jnp.array([1, 4])] > 5 * deviation[jnp.array([1, 4])]).all()  # large enough to be seen
    assert (ends[:, 0] == 1).all()


def test_one_key_draws_one_noise_for_tokens_and_density(key, dtype):
    weights = tfl.OrnsteinUhlenbeck(heads(2), jnp.eye(2), 1.0, 0.3)
    tokens = tfl.CommonNoiseFlow(tfl.AttentionFlow(CIRCLE.manifold, weights), field(2))
    limit = tfl.CommonNoiseDensityFlow(tfl.DensityFlow(tokens.flow, CIRCLE), tokens.field)
    ts = jnp.linspace(0.0, 0.1, 5)
    limit, tokens = tfl.realise((limit, tokens)[0], key, ts), tfl.realise(tokens, key, ts)
    np.testing.assert_array_equal(limit.noise.values, tokens.noise.values)
    np.testing.assert_array_equal(limit.flow.flow.weights.values.score, tokens.flow.weights.values.score)
    observe = {"least": tfl.LeastDensity(), "energy": tfl.Energy()}
    solution = tfl.solve(limit, start(CIRCLE).astype(dtype), ts, observe=observe)
    end = solution.states[-1]
    assert end.dtype == solution.observed["least"].dtype == dtype and (solution.states[:, 0] == 1).all()
    assert solution.observed["least"][-1] == jnp.min(limit.flow.density(end))
    assert abs(solution.observed["energy"][-1] - solution.observed["energy"][0]) > 1e-3


def test_what_has_no_density_is_refused(key):
    quiet = tfl.DensityFlow(tfl.AttentionFlow(CIRCLE.manifold, heads(2)), CIRCLE)
    kernel = field(2).kernel
    own = tfl.IdiosyncraticField(CIRCLE.nodes.shape[0], 2, kappa=1.0)
    for wrong, reason in (
        (tfl.GaussianField(kernel, tfl.Gram(29)), "field must depend smoothly on the points"),
        (field(2) + tfl.GaussianField(kernel, tfl.Gram(29)), "field must depend smoothly on the points"),
        (own, "field must be common to all tokens"),
        (field(2) + own, "field must be common to all tokens"),
        (field(3), r"field lives on Sphere\(3\), the flow on Sphere\(d=2\)"),
    ):
        with pytest.raises(ValueError, match=reason):
            tfl.CommonNoiseDensityFlow(quiet, wrong)
    with pytest.raises(ValueError, match=r"noise of shape \(7, 2\); the noise given has \(4,\)"):
        tfl.CommonNoiseDensityFlow(quiet, field(2), noise=tfl.Brownian(jnp.zeros(4)))
    flow = tfl.realise(tfl.CommonNoiseDensityFlow(quiet, field(2)), key, jnp.linspace(0.0, 1.0, 3))
    with pytest.raises(ValueError, match=r"x0 must be the coefficients of a density of mass 1.* got mass 0.5"):
        tfl.solve(flow, 0.5 * start(CIRCLE), [0.0, 1.0])
    with pytest.raises(ValueError, match=r"x0 must hold the coefficients .* shape .41,.; got shape .5,."):
        tfl.solve_ensemble(flow, jnp.ones((2, 5)), [0.0, 1.0], in_axes=(None, 0))
    with pytest.raises(ValueError, match=r"coefficients must hold"):
        flow.diffusion(0.0, jnp.ones(5), jnp.zeros((7, 2)))
