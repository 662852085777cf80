"""The mean-field experiment, on tiny sizes."""

import numpy as np
import pytest

from transformer_flows.experiments.mean_field import MeanField
from transformer_flows.experiments.runner import compute
from transformer_flows.experiments.spec import SpecError

from .named import unnamed

TINY = {"beta": [2.0], "modes": 2, "T": 0.2, "records": 2, "draws": 2, "strength": 0.5, "flow_beta": 1.0}


def test_rates_densities_and_convergence():
    data = compute(MeanField(d=2, degree=10, laws=["softmax", "unnormalised"], n=[8, 512], **TINY))
    assert data["rate"].dims == data["rate_predicted"].dims == ("case", "mode")
    np.testing.assert_allclose(data["rate"], data["rate_predicted"], rtol=1e-7)
    assert data["density"].shape == (2, 31) and data["node_x"].shape == (31, 2)
    np.testing.assert_allclose(data["density_mass"], 1, atol=1e-14)
    assert data["density"].attrs["degree"] == 10 and unnamed(data) == []
    assert (data["density_tail"] < 0.02).all() and (data["density"].max("node") > 1.3).all()
    np.testing.assert_allclose(data["density_least"], data["density"].min("node"), rtol=1e-12)
    assert list(data["series"].to_numpy()) == ["energy", "moments", "W₂"]
    error = data["scaling_error"].transpose("series", "level", "draw").to_numpy()
    # √64 = 8 times smaller in the mean over many draws
    assert (error > 0).all() and (error[:, 1].mean(axis=1) < 0.6 * error[:, 0].mean(axis=1)).all()
    assert (data["scaling_power"] < 0).all() and (data["scaling_power_expected"] == -0.5).all()


def test_on_the_sphere():
    data = compute(MeanField(d=3, degree=4, laws=["unnormalised"], n=[64], **TINY | {"draws": 1}))
    np.testing.assert_allclose(data["rate"], data["rate_predicted"], rtol=1e-7)
    assert data["density"].shape == (2, 91) and data["node_x"].shape == (91, 3)
    assert (data["density_tail"] < 0.02).all() and list(data["series"].to_numpy()) == ["energy", "moments"]
    assert 0 < data["scaling_error"].max() < 0.5 and np.isnan(data["scaling_power"]).all()


def test_more_modes_than_the_basis_has_are_refused():
    with pytest.raises(SpecError, match=r"^modes: got 9; allowed: at most degree=8"):
        MeanField(degree=8, modes=9)
