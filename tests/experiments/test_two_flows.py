"""The two flows side by side under several heads: what tells them apart."""

import numpy as np
import pytest

from transformer_flows.experiments.runner import compute
from transformer_flows.experiments.spec import SpecError
from transformer_flows.experiments.two_flows import CURVES, TwoFlows

TINY = {"n": 8, "T": 0.4, "records": 5, "step": 0.05, "seed": 3}


@pytest.fixture(scope="module")
def data():
    return compute(TwoFlows(heads=[3], weights="ou_smoothed", **TINY))


def test_names_and_dims(data):
    for name in CURVES:
        assert data[name].dims == ("flow", "heads", "t")
        assert data[name].attrs["units"] == "dimensionless" and data[name].attrs["long_name"]
        assert np.isfinite(data[name]).all()
    assert data["flow"].to_numpy().tolist() == ["attention", "mobility"]
    np.testing.assert_allclose(data["t"], np.linspace(0, 0.4, 5))


def test_several_heads_tell_the_flows_apart(data):
    several = data.sel(heads=3)
    attention, mobility = several.sel(flow="attention"), several.sel(flow="mobility")
    np.testing.assert_allclose(mobility["flow_dissipation"], mobility["flow_slope"], rtol=1e-9)
    np.testing.assert_allclose(mobility["flow_energy_slope"], mobility["flow_slope"], rtol=1e-9)
    assert (np.abs(attention["flow_dissipation"] / attention["flow_slope"] - 1) > 0.01).any()
    bound = attention["flow_slope"] * attention["flow_energy_slope"]
    assert (attention["flow_dissipation"] ** 2 <= bound * (1 + 1e-12)).all()
    # the balance closes for both; the identity for the gradient flow alone, although the weights move
    assert np.abs(several["flow_balance_residual"]).max() < 1e-7
    assert np.abs(mobility["flow_identity_residual"]).max() < 1e-7
    assert np.abs(attention["flow_identity_residual"]).max() > 1e-3


def test_wrong_combinations_are_refused():
    with pytest.raises(SpecError, match=r"^d: got 4; allowed: one of 2, 3"):
        TwoFlows(d=4)
    with pytest.raises(SpecError, match=r"^step: got 0.03"):
        TwoFlows(weights="ou_smoothed", step=0.03)
