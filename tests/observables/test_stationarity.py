"""When a slope stays small: against a search written out in Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import transformer_flows as tfl


def by_search(ts, slope, tolerance, window):
    for k, t in enumerate(ts):
        inside = (ts >= t) & (ts <= t + window + 1e-12)
        if t + window <= ts[-1] + 1e-12 and (slope[inside] < tolerance).all():
            return ts[k]
    return np.nan


def test_decay_swing_and_never():
    ts = np.linspace(0.0, 10.0, 101)
    slopes = np.stack([np.exp(-ts), 1 + np.cos(ts), np.exp(-ts) * (1 + np.cos(3 * ts)), np.full_like(ts, np.nan)])
    found = jax.jit(tfl.settling_time)(ts, slopes, 0.05, 2.0)
    np.testing.assert_allclose(found, [by_search(ts, slope, 0.05, 2.0) for slope in slopes], rtol=1e-12)
    np.testing.assert_allclose(found[0], 3.0, rtol=1e-12)  # e^{-3} is the first below
    assert np.isnan(found[1]) and np.isnan(found[3]) and np.isfinite(found[2])
    # the swing is small for a moment: a window shorter than that takes it for rest
    np.testing.assert_allclose(tfl.settling_time(ts, slopes[1], 0.05, 0.5), 2.9, rtol=1e-12)


def test_the_window_must_fit_into_the_record(dtype):
    ts = jnp.linspace(0.0, 1.0, 11, dtype=dtype)
    slope = jnp.where(ts < 0.55, 1, 0).astype(dtype)
    assert tfl.settling_time(ts, slope, 0.5, 0.4).dtype == dtype
    np.testing.assert_allclose(tfl.settling_time(ts, slope, 0.5, 0.4), 0.6, rtol=1e-6)
    assert np.isnan(tfl.settling_time(ts, slope, 0.5, 0.5))
    with pytest.raises(ValueError, match="window"):
        tfl.settling_time(ts, slope, 0.5, -1.0)


def test_times_and_values_must_belong_together():
    ts = jnp.linspace(0.0, 10.0, 11)
    with pytest.raises(ValueError, match="one number of times"):
        tfl.settling_time(ts, jnp.zeros(1), 0.1, 1.0)
    with pytest.raises(ValueError, match="increase"):
        tfl.settling_time(ts[::-1], jnp.zeros(11), 0.1, 1.0)


def test_only_what_has_a_value_at_a_moment_is_integrated():
    for wrong in (tfl.EnergyBalance(), tfl.TimeIntegral(tfl.Slope()), tfl.Slope):
        with pytest.raises(ValueError, match="observable must be one of a moment"):
            tfl.TimeIntegral(wrong)
