"""The exact gradient flow: its definition, the energy-dissipation identity, and where it meets the attention flow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import transformer_flows as tfl

from ..problems import MultiHead

SPHERE = tfl.Sphere(3)
ZERO = jnp.asarray(0.0)
OBSERVABLES = {"S": tfl.Dissipation(), "G2": tfl.Slope(), "slope2": tfl.EnergySlope(), "action": tfl.Action()}


def numpy_terms(x, D):
    """Mobilities (h, n), w_h (h, n, d) and ∇δE/δμ (n, d) of spec "Geometry" and "Two flows", head by head."""
    mobilities, w = [], []
    for matrix in np.asarray(D, x.dtype):
        kernel = np.exp(x @ matrix @ x.T)
        pull = kernel @ x @ matrix / kernel.sum(axis=1, keepdims=True)
        w.append(pull - (pull * x).sum(axis=1, keepdims=True) * x)
        mobilities.append(kernel.mean(axis=1))
    m, w = np.array(mobilities), np.array(w)
    return m, w, (m[..., None] * w).mean(axis=0)


@eqx.filter_jit
def measure(flow, x):
    return flow(ZERO, x), {name: observable(ZERO, x, flow) for name, observable in OBSERVABLES.items()}


@pytest.mark.parametrize("sign", [1, -1])
def test_velocity_and_slopes_equal_their_definitions(sign):
    problem = MultiHead(n=7, h=3, sign=sign)
    x = np.asarray(problem.x0)
    m, w, gradient = numpy_terms(x, problem.heads.D)
    effective = 1 / np.mean(1 / m, axis=0)
    square = lambda v: (v**2).sum(axis=-1)
    velocity, values = measure(tfl.MobilityFlow(SPHERE, problem.heads), problem.x0)
    np.testing.assert_allclose(velocity, sign * gradient / effective[:, None], rtol=1e-11, atol=1e-12)
    slope2 = np.mean(square(gradient) / effective)
    for name in ("G2", "slope2"):
        np.testing.assert_allclose(values[name], slope2, rtol=1e-12)
    np.testing.assert_allclose(values["S"], -sign * slope2, rtol=1e-12)
    np.testing.assert_allclose(values["action"], np.mean(m * square(w)), rtol=1e-12)


def test_velocity_is_the_gradient_of_the_energy():
    """The autodiff route: n times the Riemannian gradient of E over the effective mobility."""
    problem = MultiHead(n=7, h=3, sign=-1)
    flow = tfl.MobilityFlow(SPHERE, problem.heads)

    @jax.jit
    def gap(x):
        gradient = SPHERE.project(x, x.shape[0] * jax.grad(lambda x: tfl.Energy()(ZERO, x, flow))(x))
        heads = flow.heads(ZERO, x)
        return flow(ZERO, x) + gradient / flow.tilt(heads, flow.measure(x)).effective_mobility[:, None]

    np.testing.assert_allclose(gap(problem.x0), 0, atol=1e-12)


def test_both_flows_are_one_for_one_head_and_differ_for_more():
    one, two = MultiHead(n=7, h=1, sign=-1), MultiHead(n=7, h=2, sign=-1)
    mobility, attention = (measure(kind(SPHERE, one.heads), one.x0) for kind in (tfl.MobilityFlow, tfl.AttentionFlow))
    np.testing.assert_allclose(mobility[0], attention[0], atol=1e-13)
    np.testing.assert_allclose(list(attention[1].values()), attention[1]["S"], rtol=1e-12)
    velocity, values = measure(tfl.AttentionFlow(SPHERE, two.heads), two.x0)
    assert np.abs(velocity - measure(tfl.MobilityFlow(SPHERE, two.heads), two.x0)[0]).max() > 0.1
    assert values["S"] ** 2 < values["G2"] * values["slope2"] and values["G2"] < values["action"]


@pytest.mark.parametrize("h", [1, 4])
def test_energy_dissipation_identity(h):
    """E(T) − E(0) = ∫∂_tE dt − ½∫|μ'|² dt − ½∫slope² dt to solver accuracy, under moving heads."""
    start = tfl.Heads.tied(0.5 * tfl.random_symmetric(jax.random.key(h), h=h, d=3), sign=-1)
    path = tfl.Oscillating(start, tfl.phase_spread(h))
    observe = {"balance": tfl.EnergyBalance(), "G2": tfl.TimeIntegral(tfl.Slope())}
    observe["slope2"] = tfl.TimeIntegral(tfl.EnergySlope())
    x0 = MultiHead(n=12).x0
    residuals = []
    for kind in (tfl.MobilityFlow, tfl.AttentionFlow)[: 1 if h == 1 else 2]:
        ts = np.array([0.0, 0.5, 1.0])
        seen = tfl.solve(kind(SPHERE, path), x0, ts, observe=observe, rtol=1e-9, atol=1e-11).observed
        np.testing.assert_allclose(seen["balance"].residual, 0, atol=1e-7)
        change = seen["balance"].energy_change - seen["balance"].weight_drift
        residuals.append(np.abs(change + 0.5 * seen["G2"] + 0.5 * seen["slope2"]).max())
    assert residuals[0] < 1e-7
    assert h == 1 or residuals[1] > 1e-3  # the head-averaged flow is no gradient flow


def test_ratios_of_mobilities_do_not_overflow(dtype):
    """Scores of 300, whose exponentials are beyond single precision."""
    problem = MultiHead(n=7, h=2, sign=-1)
    heads = tfl.Heads.tied(300 * problem.heads.D[:1] / jnp.abs(problem.heads.D[0]).max(), sign=-1)
    x = problem.x0.astype(dtype)
    fields = [eqx.filter_jit(kind(SPHERE, heads))(ZERO, x) for kind in (tfl.MobilityFlow, tfl.AttentionFlow)]
    assert fields[0].dtype == dtype
    np.testing.assert_allclose(
        *fields, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-2 if dtype == "float32" else 1e-9
    )


@pytest.mark.parametrize(
    "scale, narrow, dtype",
    [((50, 45), True, "float32"), ((-450, -400), False, "float64"), ((-900, -900), True, "float64")],
    ids=["large in single precision", "large", "small"],
)
def test_slope_where_squares_of_mobilities_are_no_floats(scale, narrow, dtype):
    """Heads βI against NumPy in extended precision: slopes are floats, mobilities or their squares are not."""
    x = np.asarray(MultiHead(n=7).x0.astype(dtype))
    if narrow:  # cosines of 0.6 and more
        x = np.asarray(SPHERE.retract(jnp.array([3.0, 0, 0], dtype)[None] + x))
    D = np.array(scale)[:, None, None] * np.eye(3)
    m, _, gradient = numpy_terms(x.astype(np.longdouble), D)
    square = (gradient**2).sum(axis=-1)
    limits = np.finfo(dtype)
    assert square.max() > limits.max or square.max() < limits.tiny
    flow = tfl.MobilityFlow(SPHERE, tfl.Heads.tied(D.astype(dtype), sign=-1))
    velocity, values = measure(flow, x)
    rtol = 1e-3 if dtype == "float32" else 1e-9
    expected = gradient * np.mean(1 / m, axis=0)[:, None]
    np.testing.assert_allclose(velocity, -expected.astype(float), rtol=rtol, atol=rtol * float(abs(expected).max()))
    np.testing.assert_allclose(values["slope2"], float(np.mean(square * np.mean(1 / m, axis=0))), rtol=rtol)
    np.testing.assert_allclose(values["G2"], values["slope2"], rtol=rtol)


def test_what_is_no_float_is_infinite_or_zero(dtype):
    """Heads βI with β = ±1000 are never NaN; tokens at one point have mobilities of 0 to rounding, and no slope."""
    heads = lambda *scale: tfl.Heads.tied(np.array(scale, dtype)[:, None, None] * np.eye(3, dtype=dtype), sign=-1)
    x = MultiHead(n=7).x0.astype(dtype)
    point = jnp.zeros((7, 3), dtype).at[:, 0].set(1)
    for kind in (tfl.MobilityFlow, tfl.AttentionFlow):
        # the pull of the first is one of rounding alone
        velocity, values = measure(kind(SPHERE, heads(1e3, -1e3)), x)
        assert not np.isnan([*velocity.ravel(), values["slope2"], values["G2"]]).any()
        velocity, values = measure(kind(SPHERE, heads(-1e3, -2e3)), x)
        assert not np.isnan(velocity).any() and values["slope2"] == np.inf and not np.isnan(values["G2"])
        velocity, values = measure(kind(SPHERE, heads(-1e3, -1e3)), point)
        assert not np.any(velocity) and values["slope2"] == values["G2"] == 0
    # where one of them is large and the other small in single precision
    m, _, gradient = numpy_terms(np.asarray(x, np.longdouble), np.array([60, -60])[:, None, None] * np.eye(3))
    velocity, values = measure(tfl.MobilityFlow(SPHERE, heads(60, -60)), x)
    assert np.isfinite(velocity).all()
    slope2 = float(np.mean((gradient**2).sum(axis=-1) * np.mean(1 / m, axis=0)))
    np.testing.assert_allclose(values["slope2"], slope2, rtol=1e-3 if dtype == "float32" else 1e-9)


def test_padded_tokens_neither_move_nor_matter():
    problem = MultiHead(n=5, h=2, sign=-1)
    padded = jnp.concatenate([problem.x0, jnp.full((2, 3), 1e200)])
    flow = tfl.MobilityFlow(SPHERE, problem.heads, mask=tfl.Padding(jnp.arange(7) < 5))
    velocity, values = measure(flow, padded)
    plain, expected = measure(tfl.MobilityFlow(SPHERE, problem.heads), problem.x0)
    np.testing.assert_allclose(velocity[:5], plain, atol=1e-14)
    assert not np.any(velocity[5:])
    for name, value in values.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-13)


def test_what_is_no_gradient_flow_is_refused():
    untied = MultiHead().heads
    paths = (tfl.OrnsteinUhlenbeck(untied, jnp.eye(3), 1.0, 1.0), tfl.Constant(untied))
    for weights in (untied, *paths):
        with pytest.raises(ValueError, match="MobilityFlow needs tied heads"):
            tfl.MobilityFlow(SPHERE, weights)
    with pytest.raises(ValueError, match="MobilityFlow needs tied heads"):
        tfl.MobilityFlow(SPHERE, tfl.Prescribed(lambda t: untied))(ZERO, MultiHead().x0)
    with pytest.raises(ValueError, match="under Causal attention is no gradient"):
        tfl.MobilityFlow(SPHERE, MultiHead(sign=1).heads, mask=tfl.Causal())
