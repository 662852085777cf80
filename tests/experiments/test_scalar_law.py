"""Scalar laws on the host, and the power law through means."""

import numpy as np
import pytest
from scipy.integrate import quad

from transformer_flows import theory
from transformer_flows.experiments.equiangular import scalar_law
from transformer_flows.experiments.power_law import fit_power_law
from transformer_flows.experiments.scalar_law import bracket, follow, hitting_time, interpolated_hitting_time


def test_follow_is_the_closed_form_at_zero_beta():
    ts = np.linspace(0, 5, 11)
    exact = theory.equiangular_cosine_at_zero_beta(ts, 32)
    np.testing.assert_allclose(follow(scalar_law("softmax", 0.0, 32), 0.0, ts), exact, atol=1e-11)


def test_a_solve_that_is_given_up_leaves_blanks():
    """ρ' = ρ² from 1 blows up at t = 1."""
    ts = np.linspace(0, 2, 9)
    rho = follow(lambda rho: rho**2, 1.0, ts)
    np.testing.assert_allclose(rho[:4], 1 / (1 - ts[:4]), rtol=1e-9)
    assert rho.shape == ts.shape and np.isnan(rho[5:]).all()


@pytest.mark.parametrize("law", ["softmax", "unnormalised"])
@pytest.mark.parametrize("beta", [0.0, 4.0])
def test_hitting_time_is_the_integral_of_the_inverse_rate(law, beta):
    rate = scalar_law(law, beta, 8)
    exact, _ = quad(lambda rho: 1 / rate(rho), 0, 0.999, epsabs=1e-12, epsrel=1e-11, limit=200)
    assert hitting_time(rate, 0.0, 0.999) == pytest.approx(exact, rel=1e-9)
    assert hitting_time(rate, 0.9995, 0.999) == 0.0


def test_interpolated_hitting_time():
    ts = np.linspace(0, 4, 41)
    rho = 1 - np.exp(-2.5 * ts)
    assert interpolated_hitting_time(ts, rho, 0.999) == pytest.approx(np.log(1000) / 2.5, rel=1e-10)
    assert interpolated_hitting_time(ts, rho, 0.0) == 0.0
    assert np.isnan(interpolated_hitting_time(ts[:5], rho[:5], 0.999))
    assert rho[bracket(rho, 0.999)] < 0.999 <= rho[bracket(rho, 0.999) + 1]
    assert bracket(rho, 0.0) is None and bracket(rho[:5], 0.999) is None


def test_an_exact_power_law_is_found_exactly():
    heads = np.array([1, 10, 100])
    means = np.tile(0.4 * heads[:, None] ** -0.95, (1, 5))
    law = fit_power_law(heads, means, seed=0)
    np.testing.assert_allclose(law, [0.4, -0.95, -0.95, -0.95], rtol=1e-12)


def test_the_interval_covers_the_exponent_and_shrinks_with_paths():
    heads, rng = np.array([1, 10, 100]), np.random.default_rng(0)

    def law(paths):
        noise = rng.lognormal(0, 0.3, (3, paths))
        return fit_power_law(heads, 0.4 * heads[:, None] ** -0.95 * noise, seed=0)

    few, many = law(5), law(500)
    assert many.low < -0.95 < many.high
    assert many.high - many.low < (few.high - few.low) / 3


@pytest.mark.parametrize("means", [[[0.1, 0.2]], [[0.1], [np.nan]], [[0.1], [0.0]]])
def test_no_law_where_the_means_determine_none(means):
    means = np.array(means)
    assert np.isnan(fit_power_law(np.arange(1, len(means) + 1), means, seed=0)).all()


def test_one_path_gives_a_law_without_interval():
    law = fit_power_law(np.array([1, 10]), np.array([[1.0], [0.1]]), seed=0)
    assert law.exponent == pytest.approx(-1) and np.isnan([law.low, law.high]).all()
