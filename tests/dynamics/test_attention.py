"""The attention flow against NumPy, scalar laws, the angle equation, and the special cases of masks and kinds."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.integrate

import transformer_flows as tfl
from transformer_flows import theory

from ..problems import MultiHead, equiangular_tokens, numpy_attention, scalar_law


@eqx.filter_jit
def velocity(flow, x):
    return flow(0.0, x)


TIGHT = {"rtol": 1e-11, "atol": 1e-12}


class Cosine(tfl.AbstractObservable):
    """⟨x_0, x_1⟩."""

    def __call__(self, t, x, flow):
        return jnp.dot(x[0], x[1])


@pytest.mark.parametrize("sign", [None, 1, -1])
def test_velocity_equals_the_definition(sign):
    problem = MultiHead(n=7, d=5, h=3, sign=sign)
    x = np.asarray(problem.x0)
    expected = numpy_attention(x, np.asarray(problem.heads.score), np.asarray(problem.heads.value))
    np.testing.assert_allclose(velocity(problem.flow, problem.x0), expected, atol=1e-14)


BETAS = jnp.array([0.0, 0.5, 1.0, 4.0, 9.0])


@pytest.mark.parametrize("n, rho0", [(8, 0.0), (2, -0.5)], ids=["equiangular", "two tokens"])
@pytest.mark.parametrize(
    "kind, rate",
    [(tfl.Softmax(), theory.equiangular_rate), (tfl.Unnormalised(), theory.equiangular_rate_unnormalised)],
    ids=["softmax", "unnormalised"],
)
def test_equiangular_flows_follow_their_scalar_law(kind, rate, n, rho0):
    """To 1e-8 for β from 0 to 9, all β in one call."""
    x0 = jnp.asarray(equiangular_tokens(n, rho0))
    ts = jnp.linspace(0.0, 2.0, 9)

    def run(beta):
        flow = tfl.AttentionFlow(tfl.Sphere(n), tfl.Heads.identity(n, beta=beta), kind)
        return tfl.solve(flow, x0, ts, observe={"cosine": Cosine()}, states=False, **TIGHT).observed["cosine"]

    measured = jax.jit(lambda betas: jax.lax.map(run, betas))(BETAS)
    for beta, cosine in zip(BETAS, measured, strict=True):
        np.testing.assert_allclose(cosine, scalar_law(lambda r: rate(r, beta, n), rho0, ts), atol=1e-8)  # noqa: B023


def test_two_tokens_at_zero_beta_are_a_hyperbolic_tangent():
    ts = jnp.linspace(0.0, 3.0, 7)
    flow = tfl.AttentionFlow(tfl.Sphere(2), tfl.Heads.identity(2, beta=0.0))
    x0 = jnp.asarray(equiangular_tokens(2, -0.9))
    cosine = tfl.solve(flow, x0, ts, observe={"cosine": Cosine()}, **TIGHT).observed["cosine"]
    np.testing.assert_allclose(cosine, np.tanh(ts + np.arctanh(-0.9)), atol=1e-9)


def test_hitting_times_of_clustering():
    """Time to ρ = 0.999 from ρ = 0: the flow's crossing against the integral ∫dρ/rate."""
    n, ts = 8, jnp.linspace(0.0, 12.0, 2401)
    x0 = jnp.asarray(equiangular_tokens(n, 0.0))

    def run(beta):
        flow = tfl.AttentionFlow(tfl.Sphere(n), tfl.Heads.identity(n, beta=beta))
        return tfl.solve(flow, x0, ts, observe={"cosine": Cosine()}, states=False, **TIGHT).observed["cosine"]

    betas = jnp.array([0.0, 1.0, 3.0])
    for beta, cosine in zip(betas, jax.jit(lambda b: jax.lax.map(run, b))(betas), strict=True):
        inverse = lambda rho: 1 / float(theory.equiangular_rate(rho, beta, n))  # noqa: B023
        predicted = scipy.integrate.quad(inverse, 0.0, 0.999, epsabs=1e-12, limit=200)[0]
        # between saved times log(1 − ρ) is almost linear
        k = int(np.argmax(cosine >= 0.999))
        y = np.log(1 - np.asarray(cosine[k - 3 : k + 3]))
        crossing = _crossing(np.asarray(ts[k - 3 : k + 3]), y, np.log(1e-3))
        assert abs(crossing - predicted) < 1e-8


def _crossing(t, y, level):
    """Time at which the polynomial through decreasing samples reaches a level (inverse interpolation)."""
    s = y - level
    return float(sum(t[i] * np.prod([s[j] / (s[j] - s[i]) for j in range(len(s)) if j != i]) for i in range(len(s))))


def test_causal_identity_gathers_at_the_first_token():
    """arXiv:2411.04990: with V = I every token goes to the first one, which does not move."""
    x0 = tfl.Sphere(3).uniform(jr.key(0), 6)
    flow = tfl.AttentionFlow(tfl.Sphere(3), tfl.Heads.identity(3, beta=1.0), mask=tfl.Causal())
    x = tfl.solve(flow, x0, [0.0, 60.0], rtol=1e-6, atol=1e-9).states[-1]
    np.testing.assert_allclose(x, jnp.broadcast_to(x0[:1], x.shape), atol=1e-6)
    np.testing.assert_allclose(x[0], x0[0], atol=1e-12)


def test_dimension_two_is_the_angle_equation():
    """θ_i' = −(1/n) Σ_j e^{β cos(θ_i−θ_j)} sin(θ_i−θ_j) for unnormalised attention; β = 0 is Kuramoto's model."""
    theta0 = np.array([0.1, 1.0, 2.5, 4.0, 5.5])
    x0 = jnp.stack([jnp.cos(theta0), jnp.sin(theta0)], axis=1)

    def run(beta):
        flow = tfl.AttentionFlow(tfl.Sphere(2), tfl.Heads.identity(2, beta=beta), tfl.Unnormalised())
        return tfl.solve(flow, x0, [0.0, 1.0], **TIGHT).states[-1]

    for beta, x in zip((0.0, 2.0), jax.jit(lambda b: jax.lax.map(run, b))(jnp.array([0.0, 2.0])), strict=True):

        def angles(_, theta, beta=beta):
            gap = theta[:, None] - theta[None, :]
            return -np.mean(np.exp(beta * np.cos(gap)) * np.sin(gap), axis=1)

        theta = scipy.integrate.solve_ivp(angles, (0, 1), theta0, rtol=1e-12, atol=1e-13).y[:, -1]
        np.testing.assert_allclose(x, np.stack([np.cos(theta), np.sin(theta)], axis=1), atol=1e-8)


def test_padded_tokens_change_nothing_and_do_not_move():
    """Fault 1: padding, all-zero tokens included, gives exactly zero gradient, never NaN."""
    problem = MultiHead(n=5, h=2, sign=-1)
    padded = jnp.concatenate([problem.x0, jnp.zeros((3, 3))])
    flow = tfl.AttentionFlow(tfl.Sphere(3), problem.heads, mask=tfl.Padding(jnp.arange(8) < 5))
    np.testing.assert_allclose(velocity(flow, padded)[:5], velocity(problem.flow, problem.x0), atol=1e-15)
    assert not np.any(velocity(flow, padded)[5:])
    observables = (tfl.Energy(), tfl.Slope(), tfl.Dissipation(), tfl.OrderParameter(), tfl.Diameter())

    @eqx.filter_jit
    def measured(flow, x):
        """Every observable after two steps, and the gradient of their sum."""

        def values(x):
            last = tfl.solve(flow, x, np.array([0.0, 0.2]), dt=0.1, solver=diffrax.Euler()).states[-1]
            return jnp.stack([observable(jnp.asarray(0.2), last, flow) for observable in observables])

        return values(x), jax.grad(lambda x: values(x).sum())(x)

    full, short = measured(flow, padded), measured(problem.flow, problem.x0)
    np.testing.assert_allclose(full[0], short[0], atol=1e-13)
    np.testing.assert_allclose(full[1][:5], short[1], atol=1e-11)
    assert not np.any(full[1][5:])


def test_antipodal_pair_is_a_fixed_point():
    """Fault 4: two antipodal tokens under identity attention stay where they are."""
    x0 = jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    flow = tfl.AttentionFlow(tfl.Sphere(3), tfl.Heads.identity(3, beta=4.0))
    sol = tfl.solve(flow, x0, [0.0, 10.0], observe={"diameter": tfl.Diameter()})
    np.testing.assert_array_equal(sol.states[-1], x0)
    np.testing.assert_allclose(sol.observed["diameter"], np.pi, atol=1e-15)


@pytest.mark.parametrize("beta", [1e9, 1e30])
def test_huge_scores_are_hard_attention(beta):
    """Fault 7: for distinct tokens and V = I every token attends to itself: velocity 0, compiled or not."""
    x = tfl.Sphere(8).uniform(jr.key(0), 32)
    flow = tfl.AttentionFlow(tfl.Sphere(8), tfl.Heads.identity(8, beta=beta))
    hard = tfl.AttentionFlow(tfl.Sphere(8), tfl.Heads.identity(8, beta=1.0), tfl.Hardmax())
    for field in (flow, jax.jit(lambda t, x: flow(t, x)), hard):
        np.testing.assert_allclose(field(0.0, x), 0, atol=1e-14)


def test_infinite_beta_is_refused_by_name():
    with pytest.raises(ValueError, match="Hardmax"):
        tfl.Heads.identity(3, beta=np.inf)


def test_coincident_tokens_stay_together_and_permutations_commute():
    problem = MultiHead(n=6, h=3, sign=1)
    x = problem.x0.at[3].set(problem.x0[1])
    v = velocity(problem.flow, x)
    np.testing.assert_array_equal(v[3], v[1])
    order = jnp.array([4, 2, 0, 5, 1, 3])
    np.testing.assert_allclose(velocity(problem.flow, x[order]), v[order], atol=1e-14)


def test_pretrained_matrices_give_the_same_attention_weights():
    """from_qkv adds no scale of its own: ⟨K Q...⟩ as the layer computes it."""
    rng = np.random.default_rng(0)
    Q, K, V = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 3, 3))
    x = np.asarray(MultiHead(n=5).x0)
    heads = tfl.Heads.from_qkv(Q / 2.0, K, V)  # 1/√k with k = 4
    for h in range(2):
        scores = (x @ Q[h].T) @ (x @ K[h].T).T / np.sqrt(4)
        np.testing.assert_allclose((x @ np.asarray(heads.score[h]).T) @ x.T, scores, atol=1e-13)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: tfl.Heads.tied(jnp.array([[0.0, 1.0], [0.0, 0.0]]), sign=1), "symmetric"),
        (lambda: tfl.Heads.tied(jnp.eye(3), sign=2), "sign"),
        (lambda: tfl.Heads(jnp.ones((2, 3, 4)), jnp.ones((2, 3, 4))), "square"),
        (lambda: tfl.Heads(jnp.ones((2, 3, 3)), jnp.ones((1, 3, 3))), "one shape"),
        (lambda: tfl.Heads(jnp.ones((0, 3, 3)), jnp.ones((0, 3, 3))), "h, d >= 1"),
        (lambda: tfl.Heads.tied(jnp.full((1, 3, 3), jnp.nan), sign=1), "finite"),
    ],
)
def test_wrong_heads_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_heads_of_another_dimension_are_refused():
    with pytest.raises(ValueError, match="dimension"):
        tfl.AttentionFlow(tfl.Sphere(3), tfl.Heads.identity(4, beta=1.0))
