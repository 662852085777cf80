"""The experiment on the density under common noise, on tiny sizes."""

import numpy as np
import pytest

from transformer_flows.experiments.common_noise_density import CommonNoiseDensity
from transformer_flows.experiments.runner import compute
from transformer_flows.experiments.spec import SpecError

TINY = {"degree": 8, "field_degree": 2, "T": 0.2, "dt": 0.02, "records": 3, "paths": 3, "bins": 12}


def test_tokens_and_densities():
    data = compute(CommonNoiseDensity(n=[8, 2048], attention=0, bias=0.5, **TINY))
    assert data["noisy_density"].dims == ("t", "angle") and data["noisy_tokens"].dims == ("t", "bin")
    # means of 16 angles beside shares of 2048 tokens, of which 171 are expected in a bin
    means = data["noisy_density"].to_numpy().reshape(3, 12, 16).mean(axis=2)
    np.testing.assert_allclose(data["noisy_tokens"], means, atol=4 * means.max() / np.sqrt(171))
    np.testing.assert_allclose(data["noisy_tokens"].mean("bin"), 1, rtol=1e-12)
    assert np.abs(means[-1] - means[0]).max() > 0.2  # the noise moves it
    assert (
        (data["density_mass"] == 1).all()
        and (data["density_least"] > 0.3).all()
        and (data["density_tail"] < 0.02).all()
    )
    # E tanh² of a normal variable of variance σ_u² + σ_b² = ¾, and σ_c² = ¼; degrees above 2 hold little of it
    x, weights = np.polynomial.hermite_e.hermegauss(60)
    whole = 0.25 + weights @ np.tanh(0.75**0.5 * x) ** 2 / weights.sum()
    assert 0.95 * whole < data.attrs["noise_variance"] < whole
    error = data["scaling_error"].to_numpy()
    # √256 = 16 times smaller in the mean over many paths
    assert error.shape == (2, 2, 3) and (error[:, 1].mean(axis=1) < 0.25 * error[:, 0].mean(axis=1)).all()
    assert (data["scaling_power"] < 0).all() and (data["scaling_power_expected"] == -0.5).all()


def test_records_that_fall_between_steps_are_refused():
    with pytest.raises(SpecError, match=r"^dt: got 0.03; allowed: a whole part of the 0.1 between two records"):
        CommonNoiseDensity(**TINY | {"dt": 0.03})
