"""Minimising movements and the weighted distance as experiments, at tiny sizes."""

import numpy as np
import pytest

from transformer_flows.experiments import MinimisingMovements, SpecError, WeightedMetric, compute
from transformer_flows.experiments.power_law import fit_power_law
from transformer_flows.reports import figures, summarise


def test_minimising_movements_measure_order_and_energies():
    data = compute(
        MinimisingMovements(n=5, heads=2, weights=["fixed"], counts=[4, 16], draws=2, long_steps=[1.0, 10.0])
    )
    error = data["scaling_error"].to_numpy()
    assert error.shape == (1, 2, 2) and (error[:, 0] > 2 * error[:, 1]).all()
    assert abs(data["scaling_power"].item() - 1) < 0.15
    assert data["step_energy"].shape == (2, 17) and (data["step_rise"] <= 1e-14).all()
    assert {"scaling", "movements"} <= set(figures(data))
    assert "largest rise in a step" in [label for label, _ in summarise(data).rows]


def test_weighted_metric_measures_bounds_and_slices():
    data = compute(WeightedMetric(n=4, heads=2, norms=[0.0, 2.0], slices=[4], draws=2))
    value, lower, upper = (data[f"distance_{name}"].to_numpy() for name in ("value", "lower", "upper"))
    np.testing.assert_allclose(value[0], lower[0], rtol=1e-12)
    np.testing.assert_allclose(upper[1], np.exp(2.0) * lower[1], rtol=1e-12)
    assert (lower[1] < value[1]).all() and (value[1] < upper[1]).all()
    assert (data["scaling_error"] > 0).all() and data["scaling_error"].max() < 0.05
    assert {"scaling", "distances"} <= set(figures(data))
    assert "largest W_m/W₂" in [label for label, _ in summarise(data).rows]


def test_oscillating_weights_need_two_or_three_dimensions():
    with pytest.raises(SpecError, match="d: got 4; allowed: one of 2, 3"):
        MinimisingMovements(d=4)


def test_interval_of_paired_draws_ignores_what_they_share():
    """Every draw has its own factor and the same power: paired, the interval is a point; unpaired, it is wide."""
    levels = np.array([1.0, 2.0, 4.0])
    errors = levels[:, None] ** -2.0 * np.array([[1.0, 3.0, 10.0]])
    paired, unpaired = (fit_power_law(levels, errors, 0, paired=paired) for paired in (True, False))
    np.testing.assert_allclose([paired.low, paired.exponent, paired.high], -2, rtol=1e-12)
    assert unpaired.high - unpaired.low > 0.5
