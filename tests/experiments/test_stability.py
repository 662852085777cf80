"""Stability, limits of the weights and long time, on tiny sizes and by routes of their own."""

import jax.numpy as jnp
import numpy as np
import pytest

import transformer_flows as tfl
from transformer_flows import theory
from transformer_flows.experiments.moving_weights import calming_weights, draw_heads, fold
from transformer_flows.experiments.omega_limit import OmegaLimit
from transformer_flows.experiments.runner import compute
from transformer_flows.experiments.spec import SpecError
from transformer_flows.experiments.stability import Stability, distances, norm_exponent
from transformer_flows.experiments.weight_limit import LEVELS, PERTURBATIONS, WeightLimit
from transformer_flows.experiments.weight_limit_solve import trial_measures
from transformer_flows.reports import figures, summarise
from transformer_flows.transport import wasserstein

from .named import unnamed

SPHERE = tfl.Sphere(3)


GROWTH = {"n": 7, "T": 0.4, "records": 5, "step": 0.1, "sizes": [1e-3, 0.1], "heads": 2}
GROWTH |= {"signs": ["repelling"], "weights": ["oscillating_locked"]}


def heads(h=2, sign=-1):
    return draw_heads(fold(0), h, 3, sign=sign, scale=0.2, dtype="float64")


def test_growth_stays_below_its_bound_and_order_does_not_matter():
    data = compute(Stability(**GROWTH))
    assert data["growth"].dims == data["growth_rate"].dims == ("case", "perturbation", "t")
    assert data["growth_bound"].dims == data["growth_rate_bound"].dims == ("case", "t")
    np.testing.assert_array_equal(data["growth"][..., 0], 1)
    assert unnamed(data) == []
    assert (data["growth"] <= data["growth_bound"]).all()
    assert (np.abs(data["growth"][..., -1] - 1) > 1e-4).all()
    np.testing.assert_allclose(data["growth_rate"][..., 1:] * data["t"][1:], np.log(data["growth"][..., 1:]))
    assert data["permutation_gap"].max() < 1e-12


def test_weights_that_are_too_large_leave_blanks_and_no_traceback():
    data = compute(Stability(**GROWTH, scale=1e3))
    growth = data["growth"].to_numpy()
    assert (growth[..., 0] == 1).all() and np.isnan(growth[..., -1]).all()
    assert np.isinf(data["growth_bound"][:, 1:]).all()
    assert dict(summarise(data).rows)["bound at the last time"] == ("∞",)
    for figure in figures(data).values():
        figure.draw_without_rendering()


def test_distances_are_those_of_the_times_that_were_reached():
    x = SPHERE.uniform(fold(2), 12).reshape(3, 4, 3)
    y = SPHERE.uniform(fold(3), 12).reshape(3, 4, 3)
    apart = np.asarray(distances(x, y, SPHERE))
    np.testing.assert_array_equal(distances(x.at[1, 2, 0].set(jnp.nan), y, SPHERE), np.where([0, 1, 0], np.nan, apart))
    np.testing.assert_allclose(apart[2], wasserstein(x[2], y[2], SPHERE), rtol=1e-12)


def test_exponent_of_weights_that_do_not_move_is_the_rate_times_the_time():
    start, ts = heads(), jnp.linspace(0.0, 2.0, 5)
    rate = theory.gronwall_rate(theory.largest_norm(start.D))
    np.testing.assert_allclose(norm_exponent(tfl.Constant(start), ts), rate * ts, rtol=1e-12)


def test_powers_of_the_perturbations():
    sizes = {"n": 6, "heads": 8, "many": 8, "levels": [1e-4, 1e-3, 1e-2], "kept": [2, 4, 8], "T": 0.5, "records": 3}
    data = compute(WeightLimit(draws=3, dt=0.125, **sizes))
    assert data["scaling_error"].dims == ("series", "level", "draw")
    assert data["scaling_level"].dims == ("series", "level") and data["scaling_level"].attrs["long_name"]
    assert data["scaling_power"].dims == ("series",)
    assert list(data["scaling_level_name"][:3].to_numpy()) == [*LEVELS.values()]
    assert unnamed(data) == []
    noise, decay, kept = np.asarray(data["scaling_power"]).reshape(3, 3).T
    np.testing.assert_allclose(noise, 1, atol=0.06)
    np.testing.assert_allclose(decay, 1, atol=0.06)
    assert (kept < -0.1).all()
    np.testing.assert_array_equal(data["scaling_power_expected"], [1, 1, -0.5] * 3)
    # decay is not random: one draw, and no interval
    one = data["scaling_error"][[*PERTURBATIONS].index("weight_decay")]
    assert np.isfinite(one[:, 0]).all() and np.isnan(one[:, 1:]).all()
    assert np.isnan(data["scaling_power_low"][1]) and np.isfinite(data["scaling_power_low"][0])


def test_test_measures_lie_on_the_sphere_and_apart():
    clouds = trial_measures(SPHERE, SPHERE.uniform(fold(1), 12))
    np.testing.assert_allclose(np.linalg.norm(clouds, axis=-1), 1, rtol=1e-12)
    assert len({round(float(np.linalg.norm(cloud.mean(axis=0))), 3) for cloud in clouds}) == 4


def test_calming_weights_have_the_variance_of_their_equation():
    """dX = −X dt + g e^{−γt} dW from 0: variance of a diagonal entry g²(e^{−2γt} − e^{−2t})/(2(1 − γ))."""
    start = tfl.Heads.tied(jnp.broadcast_to(jnp.eye(3), (4000, 3, 3)), sign=-1)
    path = calming_weights(start, fold(5), 2.0, calming=0.5, step=0.5)
    entry = np.asarray(path.values.D)[:, :, 0, 0]
    ts = np.asarray(path.grid)
    expected = 2 * (np.exp(-ts) - np.exp(-2 * ts))
    np.testing.assert_allclose(entry.var(axis=1), expected, atol=0.05)
    np.testing.assert_allclose(entry.mean(axis=1), 1, atol=0.05)
    np.testing.assert_array_equal(path.values.D[0], start.D)


def test_integrable_weights_settle_at_a_stationary_point():
    sizes = {"n": 6, "heads": 2, "T": 20.0, "records": 101, "step": 0.2, "tolerance": 1e-2}
    data = compute(OmegaLimit(cases=["ou_calming"], seed=1, **sizes))
    assert data["settling_slope"].dims == ("case", "t")
    assert unnamed(data) == []
    calming = data.isel(case=0)
    assert calming["weights_integrable"] == 1 and 0 < calming["settling_time"] < 20
    after = calming["settling_slope"].where(data["t"] >= calming["settling_time"], drop=True)
    assert (after < 1e-2).all()
    # all heads are I in the end, so both slopes are the one of that energy
    np.testing.assert_allclose(calming["limit_slope"], calming["settling_energy_slope"][-1], rtol=0.1)
    assert calming["limit_slope"] < 1e-2


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Stability(step=0.03), "^step: got 0.03"),
        (lambda: Stability(d=5), "^d: got 5; allowed: one of 2, 3"),
        (lambda: WeightLimit(kept=[3] * 8), "^kept"),
        (lambda: WeightLimit(kept=[2]), "as many entries as levels"),
        (lambda: OmegaLimit(calming=1.5), "at most 1, the rate of the pull"),
        (lambda: OmegaLimit(step=0.04), "^step: got 0.04"),
        (lambda: OmegaLimit(sign=2), "-1 .descent"),
    ],
)
def test_wrong_values_are_refused(build, words):
    with pytest.raises(SpecError, match=words):
        build()
