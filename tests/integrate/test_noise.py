"""Flows under common noise: laws known exactly, both senses of the integral, strong orders, one noise for all steps."""

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl
from transformer_flows import theory

D, T = 3, 1.0
SPHERE = tfl.Sphere(D)
KERNEL = theory.ActivationKernel(jnp.tanh, D, 1.0, 0.1, 0.1)
FIELD = tfl.GaussianField(KERNEL, tfl.Harmonics(6))
REST = tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), FIELD)
TS = jnp.linspace(0.0, T, 51)


def attention(d=D, **options):
    return tfl.AttentionFlow(tfl.Sphere(d), tfl.Heads.identity(d, beta=1.0), **options)


def solved(flow, key, x0, **options):
    return tfl.solve(tfl.realise(flow, key, TS), x0, TS, **options)


def test_a_scan_by_hand_takes_the_same_steps(key):
    flow = tfl.realise(tfl.CommonNoiseFlow(attention(), FIELD), key, TS)
    x0 = SPHERE.uniform(key, 5)
    w, factor = flow.noise.values, FIELD.prepared().factor
    x = x0
    for t, dw in zip(TS, jnp.diff(w, axis=0), strict=False):
        moved = SPHERE.project(x, factor(x) @ dw)
        y = x + moved
        moved = (moved + SPHERE.project(y, factor(y) @ dw)) / 2
        x = SPHERE.retract(x + flow.flow(t, x) * (T / 50) + moved)
    solution = tfl.solve(flow, x0, TS)
    assert solution.status == "successful"
    np.testing.assert_allclose(solution.states[-1], x, atol=1e-13)


LAWS = {
    "Stratonovich, modes": (REST, None),
    "Stratonovich, Heun": (REST, diffrax.Heun()),
    "Itô, modes": (REST.to_ito(), None),
    "Itô, Gram": (tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), tfl.GaussianField(KERNEL, tfl.Gram(2))).to_ito(), None),
    "own noise": (tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), tfl.IdiosyncraticField(2, D, 2 / 0.8)), None),
}


@pytest.mark.parametrize("name", LAWS)
def test_one_token_forgets_its_start_at_the_known_rate(name, key):
    flow, solver = LAWS[name]
    x0 = SPHERE.uniform(key, 2)
    members = 1000
    solution = tfl.solve_ensemble(flow, x0, TS[::50], jr.split(key, members), dt=0.02, solver=solver)
    cosine = jnp.sum(solution.states[:, -1, 0] * x0[0][None], axis=-1)
    variance = 0.8 if name == "own noise" else KERNEL(1.0)
    wanted = jnp.exp(-(D - 1) * variance * T / 2)
    deviation = jnp.std(cosine) / members**0.5
    assert jnp.abs(jnp.mean(cosine) - wanted) < 3.5 * deviation + 0.01, (float(jnp.mean(cosine)), float(wanted))
    assert deviation < 0.02 and float(jnp.abs(jnp.sum(solution.states**2, axis=-1) - 1).max()) < 1e-14


def test_both_senses_converge_to_one_path(key):
    """The Stratonovich equation and its Itô form are one equation: on one path their gap falls like √h."""
    noise = tfl.Brownian(FIELD.like, unit=1 / 16, depth=7)
    flow = tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), FIELD, noise=noise)
    x0 = SPHERE.uniform(key, 4)
    gaps = []
    for steps in (64, 1024):
        ts = jnp.linspace(0.0, T, steps + 1)
        ends = [
            tfl.solve_ensemble(sense, x0, ts[:: len(ts) - 1], jr.split(key, 8), dt=T / steps).states[:, -1]
            for sense in (flow, flow.to_ito())
        ]
        gaps.append(float(jnp.sqrt(jnp.mean(jnp.sum((ends[0] - ends[1]) ** 2, axis=-1)))))
    assert 0.15 < gaps[1] / gaps[0] < 0.4  # √(1/16) is 0.25


def strong_order(flow, keys, x0, finest, levels):
    """The power of h in the distance to the finest path, all on one noise for every key."""
    ends = {}
    for level in (*levels, finest):
        solution = tfl.solve_ensemble(flow, x0, jnp.array([0.0, T]), keys, dt=T / 2**level)
        ends[level] = solution.states[:, -1]
    errors = [float(jnp.sqrt(jnp.mean(jnp.sum((ends[level] - ends[finest]) ** 2, axis=-1)))) for level in levels]
    return -np.polyfit(levels, np.log2(errors), 1)[0]


@pytest.mark.slow
@pytest.mark.parametrize("sense", ["Stratonovich", "Itô"])
def test_strong_order_is_one_half_for_modes_that_do_not_commute(sense, key):
    noise = tfl.Brownian(FIELD.like, unit=1.0, depth=11)
    flow = tfl.CommonNoiseFlow(attention(), FIELD, noise=noise)
    order = strong_order(
        flow if sense == "Stratonovich" else flow.to_ito(),
        jr.split(key, 48),
        SPHERE.uniform(key, 3),
        11,
        (3, 4, 5, 6, 7),
    )
    assert abs(order - 0.5) < 0.15, order


@pytest.mark.slow
def test_strong_order_is_one_for_one_scalar_mode(key):
    """On the circle a constant field along one axis: one Brownian motion, which commutes with itself."""
    circle = tfl.Sphere(2)

    class OneAxis(tfl.AbstractField):
        @property
        def d(self):
            return 2

        @property
        def like(self):
            return jax.ShapeDtypeStruct((), jnp.result_type(float))

        @property
        def depends_smoothly(self):
            return True

        def __call__(self, x, dw):
            return jnp.broadcast_to(dw * jnp.array([[0.0, 1.0]]), x.shape)

        def ito_drift(self, x):
            return -0.5 * x

        def prepared(self):
            return self

    field = OneAxis()  # pyright: ignore[reportCallIssue]
    flow = tfl.CommonNoiseFlow(tfl.RestFlow(circle), field, noise=tfl.Brownian(field.like, unit=1.0, depth=12))
    order = strong_order(flow, jr.split(key, 48), circle.uniform(key, 3), 12, (5, 6, 7, 8, 9))
    assert abs(order - 1) < 0.15, order


def test_equal_tokens_stay_equal_to_the_last_bit(key, dtype):
    x0 = SPHERE.uniform(key, 5).astype(dtype)
    x0 = x0.at[3].set(x0[1])
    gram = tfl.CommonNoiseFlow(attention(), tfl.GaussianField(KERNEL, tfl.Gram(5))).to_ito()
    for flow in (tfl.CommonNoiseFlow(attention(), FIELD), gram):
        states = solved(flow, key, x0).states
        assert states.dtype == dtype and bool(jnp.isfinite(states).all())
        assert (states[:, 3] == states[:, 1]).all() and (states[-1, 3] != states[-1, 0]).any()
    own = FIELD + tfl.IdiosyncraticField(5, D, kappa=10.0)
    states = solved(tfl.CommonNoiseFlow(attention(), own), key, x0).states
    assert not (states[-1, 3] == states[-1, 1]).any()


def test_the_noise_of_a_member_is_its_own_and_of_every_horizon(key):
    x0 = SPHERE.uniform(key, 3)
    keys = jr.split(key, 3)
    together = tfl.solve_ensemble(REST, x0, TS, keys).states
    alone = tfl.solve(tfl.realise(REST, keys[1], TS), x0, TS).states
    np.testing.assert_array_equal(together[1], alone)
    longer = tfl.realise(REST, keys[1], jnp.linspace(0.0, 2 * T, 101))
    np.testing.assert_array_equal(longer.noise.values[:51], tfl.realise(REST, keys[1], TS).noise.values)


def test_observables_see_the_flow_without_its_noise(key):
    x0 = SPHERE.uniform(key, 6)
    flow = tfl.CommonNoiseFlow(attention(), FIELD)
    observe = {"energy": tfl.Energy(), "gap": tfl.GapEnergy(1.0), "slope": tfl.Slope(), "cosines": tfl.PairwiseCosine()}
    solution = solved(flow, key, x0, observe=observe)
    end = solution.states[-1]
    cosines = end @ end.T
    # both energies are sums over the same pairs, and β = 1
    np.testing.assert_allclose(solution.observed["gap"][-1], 0.5 * (np.e - np.exp(cosines).mean()), rtol=1e-12)
    np.testing.assert_allclose(solution.observed["gap"][-1] + solution.observed["energy"][-1], 0.5 * np.e, rtol=1e-12)
    np.testing.assert_allclose(solution.observed["slope"][-1], tfl.Slope()(T, end, flow.quiet), rtol=1e-12)
    near = SPHERE.retract(x0[:1] + 1e-9 * jr.normal(key, (6, D)))
    square = jnp.sum((near[:, None] - near[None]) ** 2, axis=-1)
    np.testing.assert_allclose(tfl.GapEnergy(1.0)(0.0, near, flow), np.e / 4 * square.mean(), rtol=1e-6)


def test_tokens_that_do_not_exist_are_not_moved(key):
    x0 = SPHERE.uniform(key, 4)
    exists = jnp.array([True, True, True, False])
    padded = tfl.CommonNoiseFlow(attention(mask=tfl.Padding(exists)), FIELD)
    bare = tfl.CommonNoiseFlow(attention(), FIELD)
    for with_, without in ((padded, bare), (padded.to_ito(), bare.to_ito())):
        states = solved(with_, key, x0).states
        np.testing.assert_allclose(states[:, :3], solved(without, key, x0[:3]).states, atol=1e-13)
        np.testing.assert_allclose(states[:, 3], jnp.broadcast_to(x0[3], (51, 3)), atol=1e-15)
    # the drift of the Itô form is radial: the retraction would hide it
    assert not padded.to_ito()(0.0, x0)[3].any() and padded.to_ito()(0.0, x0)[2].any()


def test_a_solve_factorises_the_kernel_once():
    both = tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), FIELD + tfl.IdiosyncraticField(2, D, kappa=1.0))
    basis = tfl.SphericalHarmonics(2)
    density = tfl.CommonNoiseDensityFlow(tfl.DensityFlow(attention(), basis), FIELD)
    is_field = lambda part: isinstance(part, tfl.GaussianField)
    for flow in (REST, REST.to_ito(), tfl.NoisyTangentFlow(REST), both, density):
        fields = [part for part in jax.tree.leaves(flow.prepared(), is_leaf=is_field) if is_field(part)]
        assert len(fields) == 1 and fields[0].ready is not None


def test_derivatives_pass_through_the_noise(key):
    x0 = SPHERE.uniform(key, 2)

    def end(weight):
        field = tfl.GaussianField(theory.ActivationKernel(jnp.tanh, D, weight, 0.1), tfl.Harmonics(2))
        flow = tfl.realise(tfl.CommonNoiseFlow(attention(), field), key, TS)
        return jnp.sum(tfl.solve(flow, x0, TS, states=True).states[-1] * jnp.arange(6.0).reshape(2, 3))

    backward, forward = jax.grad(end)(0.8), jax.jvp(end, (0.8,), (1.0,))[1]
    np.testing.assert_allclose(backward, forward, rtol=1e-10)
    np.testing.assert_allclose(backward, (end(0.8 + 1e-5) - end(0.8 - 1e-5)) / 2e-5, rtol=1e-6)


def test_solvers_of_the_other_sense_are_refused_with_the_reason(key):
    x0 = SPHERE.uniform(key, 2)
    gram = tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), tfl.GaussianField(KERNEL, tfl.Gram(2)))
    for flow, solver, reason in (
        (REST, diffrax.Euler(), r"sense of Stratonovich.*drop the drift ½\(DG\)G"),
        (REST, diffrax.Tsit5(), "sense of Stratonovich"),
        (REST, diffrax.StratonovichMilstein(), "Take one of EulerHeun"),
        (REST.to_ito(), diffrax.Heun(), r"sense of Itô.*would add the drift"),
        (
            REST.to_ito(),
            diffrax.ItoMilstein(),
            r"ItoMilstein needs more than the increments of its noise. Take Euler\(\)",
        ),
        (gram, None, "spurious Stratonovich drift"),
        (gram, diffrax.EulerHeun(), r"solve flow.to_ito\(\)"),
    ):
        with pytest.raises(ValueError, match=reason):
            solved(flow, key, x0, solver=solver)
    tangent = tfl.NoisyTangentFlow(REST)  # which has no Itô form to take instead
    frame = tangent.manifold.frame(key, x0, 1)
    with pytest.raises(ValueError, match=r"Take one of .*Ralston\(\)\.$"):
        solved(tangent, key, frame, solver=diffrax.Euler())


def test_steps_and_noise_that_do_not_fit_are_refused(key):
    x0 = SPHERE.uniform(key, 4)
    with pytest.raises(ValueError, match="adaptive steps cannot resolve"):
        solved(REST, key, x0, rtol=1e-3)
    with pytest.raises(ValueError, match="steps of ItoFlow must end at knots of its noise"):
        solved(REST.to_ito(), key, x0, dt=0.003)
    with pytest.raises(ValueError, match="not drawn yet"):
        tfl.solve(REST, x0, TS)
    with pytest.raises(ValueError, match="multiples of one step"):
        tfl.realise(REST, key, jnp.array([0.0, 0.1, 0.3, 0.35]))
    with pytest.raises(ValueError, match=r"noise of shape \(49, 3\); the noise given has \(4,\)"):
        tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), FIELD, noise=tfl.Brownian(jnp.zeros(4)))
    own = tfl.IdiosyncraticField(4, D, kappa=1.0)
    with pytest.raises(ValueError, match=r"noise of shape \(4, 3\); the noise given has \(3,\)"):
        tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), own, noise=tfl.Brownian(jnp.zeros(3)))
    with pytest.raises(ValueError, match=r"field lives on Sphere\(3\), the flow on Sphere\(d=4\)"):
        tfl.CommonNoiseFlow(tfl.RestFlow(tfl.Sphere(4)), FIELD)
    with pytest.raises(ValueError, match="add the fields"):
        tfl.CommonNoiseFlow(REST, FIELD)
    for noise in (tfl.OrnsteinUhlenbeck(jnp.zeros((49, 3)), jnp.zeros(()), 1.0, 1.0), tfl.Constant(jnp.zeros((49, 3)))):
        with pytest.raises(ValueError, match=f"noise must be Brownian.*got {type(noise).__name__}"):
            tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), FIELD, noise=noise)
    both = FIELD + own
    with pytest.raises(ValueError, match=r"SumOfFields takes noise of shape \(\(49, 3\), \(4, 3\)\).*has \[\(49, 3\)"):
        tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), both, noise=tfl.Brownian(list(both.like)))
    drawn = tfl.Brownian(both.like).sample(key, TS)
    assert tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), both, noise=drawn).noise is drawn


def test_steps_across_knots_have_the_law_of_their_own_length(key):
    """Independent tokens on steps of 1.5 knots: the mean cosine is off by the order of the step."""
    tokens, horizon = 15_000, 0.9
    field = tfl.IdiosyncraticField(tokens, D, kappa=2 / 0.8)
    of_start, of_noise = jr.split(key)
    x0 = SPHERE.uniform(of_start, tokens)
    ts = jnp.linspace(0.0, horizon, 91)
    flow = tfl.realise(tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), field), of_noise, ts)
    cosine = jnp.sum(tfl.solve(flow, x0, ts[::90], dt=0.015).states[-1] * x0, axis=1)
    error = float(jnp.std(cosine)) / tokens**0.5
    # the bias of such steps is a length of them; a variance that fell short by a fifth would make it 0.07
    assert abs(float(jnp.mean(cosine)) - np.exp(-0.8 * horizon)) < 0.015 + 3.5 * error < 0.035


def test_noise_that_is_coarser_than_the_steps_is_refused(key):
    x0 = SPHERE.uniform(key, 2)
    fine = tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), FIELD, noise=tfl.Brownian(FIELD.like, unit=1.0, depth=10))
    with pytest.raises(
        ValueError, match=r"line within every 0\.02 of time, but the steps are 0\.01.*Draw it on the times"
    ):
        solved(fine, key, x0, dt=0.01)
    coarse = tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), FIELD, noise=tfl.Brownian(FIELD.like, unit=0.5, depth=0))
    for flow in (coarse, coarse.to_ito()):
        with pytest.raises(ValueError, match=r"is a line within every 0\.5 of time, but the steps are 0\.02"):
            solved(flow, key, x0)
    fine = tfl.CommonNoiseFlow(tfl.RestFlow(SPHERE), FIELD, noise=tfl.Brownian(FIELD.like, unit=0.64, depth=5))
    assert solved(fine, key, x0).status == "successful"
    with pytest.raises(ValueError, match=r"tokens of shape \(n, 3\) with n >= 1; got shape \(3,\)"):
        solved(REST, key, x0[0])
    with pytest.raises(ValueError, match=r"dt must be one positive finite number; got -0\.1"):
        tfl.solve_ensemble(REST, x0, TS, jr.split(key, 2), dt=-0.1)
