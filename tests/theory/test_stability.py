"""The Grönwall rate: a hand value, norms against NumPy, and an exponent that bounds the exact one."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from transformer_flows import theory


def test_rate_by_hand():
    np.testing.assert_allclose(theory.gronwall_rate(0.0), 0)
    np.testing.assert_allclose(theory.gronwall_rate(1.0), 2 + 3 * np.e**2, rtol=1e-14)
    np.testing.assert_allclose(theory.gronwall_rate(np.array([0.5, 2.0])), [0.75 + np.e, 6 + 10 * np.e**4], rtol=1e-14)


def test_largest_norm_is_that_of_the_singular_values():
    D = np.random.default_rng(0).normal(size=(5, 4, 3, 3))
    expected = np.linalg.svd(D, compute_uv=False)[..., 0].max(axis=-1)
    np.testing.assert_allclose(theory.largest_norm(jnp.asarray(D)), expected, rtol=1e-12)


def test_exponent_of_linear_weights_is_an_upper_estimate_that_converges(dtype):
    """Λ(t) = |1 − t| on [0, 3], with a kink at a knot."""
    exact = scipy.integrate.quad(lambda t: float(theory.gronwall_rate(abs(1 - t))), 0, 3, points=[1], epsabs=1e-12)[0]
    excess = []
    for steps in (30, 60):
        ts = jnp.linspace(0.0, 3.0, steps + 1, dtype=dtype)
        exponent = theory.gronwall_exponent(ts, jnp.abs(1 - ts))
        assert exponent.dtype == dtype and exponent[0] == 0
        excess.append(float(exponent[-1]) - exact)
    assert excess[0] > excess[1] > 0
    np.testing.assert_allclose(excess[0] / excess[1], 4, rtol=0.02)


def test_what_is_no_norm_and_no_clock_is_refused():
    with pytest.raises(ValueError, match="norm must be at least 0"):
        theory.gronwall_rate(-1.0)
    with pytest.raises(ValueError, match="ts must increase"):
        theory.gronwall_exponent(jnp.array([1.0, 0.0]), jnp.ones(2))
    with pytest.raises(ValueError, match="one shape"):
        theory.gronwall_exponent(jnp.arange(3.0), jnp.ones(2))
