"""The mean field: growth rates against theory, tokens against the density, and the energy balance."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl
from transformer_flows import theory
from transformer_flows.observables._pairs import exists_in

CIRCLE = tfl.FourierModes(16)
SPHERE = tfl.SphericalHarmonics(8)
ZERO = jnp.asarray(0.0)
OBSERVABLES = (tfl.Energy(), tfl.LogEnergy(), tfl.Slope(), tfl.EnergySlope(), tfl.Action(), tfl.Dissipation())


def uniform(basis):
    return jnp.zeros(basis.size).at[0].set(1.0)


def attention(kind, basis, beta):
    return tfl.AttentionFlow(basis.manifold, tfl.Heads.identity(basis.manifold.d, beta=beta), kind=kind)


def tied(kind, sign, basis, beta):
    return kind(basis.manifold, tfl.Heads.tied(beta * jnp.eye(basis.manifold.d), sign=sign))


FLOWS = {
    "softmax": (functools.partial(attention, tfl.Softmax()), theory.growth_rate, lambda beta: 1.0),
    "unnormalised": (
        functools.partial(attention, tfl.Unnormalised()),
        theory.growth_rate_unnormalised,
        lambda beta: 1.0,
    ),
    "ascent": (functools.partial(tied, tfl.AttentionFlow, 1), theory.growth_rate, lambda beta: beta),
    "descent": (functools.partial(tied, tfl.MobilityFlow, -1), theory.growth_rate, lambda beta: -beta),
}


@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("basis", [CIRCLE, SPHERE], ids=["circle", "sphere"])
def test_growth_rates_at_the_uniform_density(name, basis):
    """The derivative of the flow there is diagonal, and its entries are the predicted rates."""
    make, predicted, value = FLOWS[name]

    @jax.jit
    def derivative(beta):
        flow = tfl.DensityFlow(make(basis, beta), basis)
        return jax.jacfwd(lambda c: flow(ZERO, c))(uniform(basis))[1:, 1:]

    for beta in (0.5, 3.0):
        matrix = derivative(jnp.asarray(beta))
        rates = predicted(beta, basis.degrees, basis.manifold.d, value=value(beta))[1:]
        np.testing.assert_allclose(jnp.diag(matrix), rates, atol=1e-9 * np.abs(rates).max(), rtol=1e-6)
        np.testing.assert_allclose(matrix - jnp.diag(jnp.diag(matrix)), 0, atol=1e-12)


def test_a_small_perturbation_grows_at_its_rate_and_mass_does_not_change():
    basis, beta, ts = SPHERE, 4.0, jnp.linspace(0.0, 1.0, 3)
    flow = tfl.DensityFlow(attention(tfl.Softmax(), basis, beta), basis)
    small = tfl.solve(flow, uniform(basis).at[6].set(1e-7), ts, atol=1e-14).states
    np.testing.assert_allclose(small[:, 6], 1e-7 * np.exp(theory.growth_rate(beta, 2, 3) * ts), rtol=1e-6)
    large = tfl.solve(flow, uniform(basis).at[jnp.array([1, 6])].set(0.2), ts, atol=1e-14).states
    assert np.all(large[:, 0] == 1) and np.abs(large[-1] - large[0]).max() > 0.1


@pytest.fixture(scope="module")
def heads():
    return tfl.Heads.tied(0.8 * tfl.random_symmetric(jr.key(3), h=2, d=2), sign=1)


def density(basis, x):
    """A smooth density with several modes."""
    rho = jnp.exp(0.5 * x[:, 0] - 0.4 * x[:, 0] * x[:, 1])
    return basis.coefficients(rho) / basis.coefficients(rho)[0]


def test_tokens_at_quantiles_follow_the_density(heads):
    """(1/n) Σ f(x_i) over them converges faster than any power of n, at every time; all observables agree."""
    flow = tfl.AttentionFlow(CIRCLE.manifold, heads)
    mean_field = tfl.DensityFlow(flow, CIRCLE)
    c = density(CIRCLE, CIRCLE.nodes)
    ts = [0.0, 0.3, 0.6]
    observe = {type(observable).__name__: observable for observable in OBSERVABLES}
    tokens, limit = (
        tfl.solve(f, start, ts, observe=observe, rtol=1e-10, atol=1e-12)
        for f, start in ((flow, CIRCLE.quantiles(c, 64)), (mean_field, c))
    )
    for name, value in limit.observed.items():
        np.testing.assert_allclose(tokens.observed[name], value, rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(CIRCLE.empirical(tokens.states[-1])[:16], limit.states[-1][:16], atol=1e-6)
    assert limit.observed["Energy"][-1] > 1.02 * limit.observed["Energy"][0]


def test_spectral_convergence(heads):
    """Each doubling of the degree takes far more digits off the error than any fixed order would."""

    def end(degree):
        basis = tfl.FourierModes(degree)
        flow = tfl.DensityFlow(tfl.AttentionFlow(basis.manifold, heads), basis)
        return np.asarray(tfl.solve(flow, density(basis, basis.nodes), [0.0, 0.6], dt=0.05).states[-1])

    fine = end(24)
    errors = [np.abs(end(degree) - fine[: 2 * degree + 1]).max() for degree in (3, 6, 12)]
    assert errors[0] > 5 * errors[1] > 250 * errors[2], errors
    assert errors[1] / errors[2] > 10 * errors[0] / errors[1]  # no power of the degree does that


def test_draws_of_the_density_have_its_energy(heads):
    flow = tfl.AttentionFlow(CIRCLE.manifold, heads)
    c = density(CIRCLE, CIRCLE.nodes)
    energies = eqx.filter_jit(lambda x: jax.lax.map(lambda x: tfl.Energy()(ZERO, x, flow), x))(
        CIRCLE.sample(jr.key(0), c, 8 * 500).reshape(8, 500, 2)
    )
    exact = tfl.Energy()(ZERO, c, tfl.DensityFlow(flow, CIRCLE))
    error = np.std(energies, ddof=1) / np.sqrt(8)
    assert abs(np.mean(energies) - exact) < 4 * error < 0.05 * exact


@pytest.mark.parametrize("sign", [1, -1])
def test_the_energy_balance_closes_with_moving_weights(sign):
    start = tfl.Heads.tied(0.4 * tfl.random_symmetric(jr.key(3), h=2, d=2), sign=sign)
    tokens = (tfl.AttentionFlow if sign == 1 else tfl.MobilityFlow)(
        CIRCLE.manifold, tfl.Oscillating(start, jnp.array([0.0, 1.0]))
    )
    flow = tfl.DensityFlow(tokens, CIRCLE)
    observe = {"balance": tfl.EnergyBalance(), "S": tfl.TimeIntegral(tfl.EnergySlope())}
    sol = tfl.solve(flow, density(CIRCLE, CIRCLE.nodes), [0.0, 0.2, 0.4], observe=observe, rtol=1e-9, atol=1e-11)
    balance = sol.observed["balance"]
    assert np.abs(balance.residual).max() < 1e-7
    assert np.abs(balance.weight_drift[-1]) > 0.01 and np.abs(balance.dissipation[-1]) > 0.01
    if sign == -1:
        np.testing.assert_allclose(balance.dissipation, sol.observed["S"], rtol=1e-8)


def test_a_basis_too_small_shows_in_the_least_density(dtype):
    """Near a cluster the density of few modes turns negative while the solve succeeds; that of many does not."""
    seen = {}
    for degree in (4, 24):
        basis = tfl.FourierModes(degree)
        flow = tfl.DensityFlow(attention(tfl.Softmax(), basis, 4.0), basis)
        start = basis.coefficients(jnp.exp(2 * basis.nodes[:, 0]))
        start = (start / start[0]).astype(dtype)
        sol = tfl.solve(flow, start, [0.0, 1.5], observe={"least": tfl.LeastDensity()}, dt=0.05)
        assert sol.status == "successful" and sol.observed["least"].dtype == dtype
        at_nodes = [basis.density(c, basis.nodes.astype(dtype)).min() for c in sol.states]
        np.testing.assert_allclose(sol.observed["least"], at_nodes, atol=1e-5 if dtype == "float32" else 1e-12)
        seen[degree] = np.asarray(sol.observed["least"])
    assert seen[4][0] > 0.05 and seen[4][-1] < -0.3
    assert (seen[24] > 0.02).all() and seen[24][-1] < 0.03
    with pytest.raises(ValueError, match="LeastDensity needs a DensityFlow; got AttentionFlow"):
        tfl.LeastDensity()(ZERO, CIRCLE.nodes, tfl.AttentionFlow(CIRCLE.manifold, tfl.Heads.identity(2, beta=1.0)))


def test_single_precision(heads):
    flow = tfl.DensityFlow(tfl.AttentionFlow(CIRCLE.manifold, heads), CIRCLE)
    c = density(CIRCLE, CIRCLE.nodes)
    single = eqx.filter_jit(flow)(ZERO, c.astype("float32"))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, eqx.filter_jit(flow)(ZERO, c), atol=2e-5)
    assert tfl.Energy()(ZERO, c.astype("float32"), flow).dtype == jnp.float32


def test_the_field_of_tokens_at_their_own_points_is_the_flow():
    x = tfl.Sphere(3).uniform(jr.key(0), 7)
    heads = tfl.Heads.tied(tfl.random_symmetric(jr.key(1), h=2, d=3), sign=1)
    padded = jnp.concatenate([x, jnp.full((2, 3), jnp.nan)])
    for kind in (tfl.AttentionFlow, tfl.MobilityFlow):
        whole = kind(tfl.Sphere(3), heads)
        flow = kind(tfl.Sphere(3), heads, mask=tfl.Padding(jnp.arange(9) < 7))
        field = flow.field(ZERO, x, flow.measure(padded))
        np.testing.assert_allclose(field, whole(ZERO, x), atol=1e-14)
    with pytest.raises(ValueError, match="Causal orders the tokens"):
        causal = tfl.AttentionFlow(tfl.Sphere(3), heads, mask=tfl.Causal())
        causal.field(ZERO, x, causal.measure(x))


def test_masses_of_a_measure():
    x, exists = jnp.ones((3, 2)), jnp.array([True, False, True])
    weights = jnp.array([0.5, jnp.nan, -0.25])
    np.testing.assert_array_equal(tfl.Measure(x).masses, np.full(3, 1 / 3))
    np.testing.assert_array_equal(tfl.Measure(x, mask=exists).masses, [0.5, 0, 0.5])
    np.testing.assert_array_equal(tfl.Measure(x, weights, exists).masses, [0.5, 0, -0.25])
    assert tfl.Measure(x.astype("float32"), weights).masses.dtype == jnp.float32


def test_what_has_no_mean_field_is_refused(heads):
    flow = tfl.AttentionFlow(tfl.Sphere(2), heads)
    with pytest.raises(ValueError, match="no mask"):
        tfl.DensityFlow(tfl.AttentionFlow(tfl.Sphere(2), heads, mask=tfl.Causal()), CIRCLE)
    for manifold in (tfl.Sphere(3), tfl.Euclidean(2)):
        other = tfl.AttentionFlow(manifold, tfl.Heads.identity(manifold.d, beta=1.0))
        with pytest.raises(ValueError, match="basis must be one of functions on"):
            tfl.DensityFlow(other, CIRCLE)
    mean_field = tfl.DensityFlow(flow, CIRCLE)
    for wrong, shape in ((jnp.ones(5), r".5,."), (jnp.ones((1, 33)), r".1, 33."), (jnp.ones((4, 2)), r".4, 2.")):
        with pytest.raises(ValueError, match=r"x0 must hold the coefficients .* shape .33,.; got shape " + shape):
            tfl.solve(mean_field, wrong, [0.0, 1.0])
    with pytest.raises(ValueError, match=r"coefficients must hold .* 33 functions of FourierModes.16."):
        mean_field(ZERO, jnp.ones(5))
    for mass in (0.5, -1.0, 0.0):
        with pytest.raises(ValueError, match=f"x0 must be the coefficients of a density of mass 1.* got mass {mass:g}"):
            tfl.solve(mean_field, mass * uniform(CIRCLE), [0.0, 1.0])
    with pytest.raises(ValueError, match=r"x0 must be finite; got nan at index .0,."):
        tfl.solve(mean_field, jnp.full(33, jnp.nan), [0.0, 1.0])
    with pytest.raises(ValueError, match=r"x0 must be tokens of shape .n, 2. with n >= 1; got"):
        tfl.solve(flow, jnp.array([1.0, 0.0]), [0.0, 1.0])
    with pytest.raises(ValueError, match="needs tokens of shape"):
        exists_in(uniform(CIRCLE), mean_field)
