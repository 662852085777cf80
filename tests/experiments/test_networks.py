"""The experiments on deep networks and common noise, on tiny sizes."""

import numpy as np
import pytest

from transformer_flows import theory
from transformer_flows.experiments.chaos import Chaos, proved_power
from transformer_flows.experiments.common_noise_rates import CommonNoiseRates, critical_distance, kolmogorov_distances
from transformer_flows.experiments.long_network import LongNetwork
from transformer_flows.experiments.network_limit import NetworkLimit
from transformer_flows.experiments.runner import compute
from transformer_flows.experiments.spec import SpecError
from transformer_flows.experiments.synchronisation_grid import SynchronisationGrid, gap_rate
from transformer_flows.reports import figures, summarise

from .named import unnamed


def test_the_grid():
    spec = SynchronisationGrid(
        n=6, d=[5], activations=["relu", "sigmoid"], bias=[0.1], width=32, layers=20, T=1.0, record_every=5, draws=3
    )
    data = compute(spec)
    assert len(spec.cases) == 2 * 3 + 3 and data["gap"].shape == (9, 3, 5) and unnamed(data) == []
    relu = data.sel(case="relu-d5-bias0.1-attention+0")
    # the row of the paper's table
    np.testing.assert_allclose(
        [relu[name] for name in ("kernel", "kernel_slope", "lyapunov", "pair_rate")], [0.115, 0.1, -0.13, 0.17]
    )
    np.testing.assert_allclose(relu["step_size"], 4 * 0.115 / 20)
    np.testing.assert_allclose(data["cosine_share"].sum("bin"), 1)
    assert (data["gap"].isel(t=-1) > 0).all()
    bare = data.sel(case="none-d5-bias0.0-attention+0")
    np.testing.assert_allclose(bare["gap"].isel(t=-1), bare["gap"].isel(t=0), rtol=1e-12)
    attracted = data.sel(case="none-d5-bias0.0-attention+1")["gap"]
    repelled = data.sel(case="none-d5-bias0.0-attention-1")["gap"]
    assert (attracted.isel(t=-1) < attracted.isel(t=0)).all() and (repelled.isel(t=-1) > repelled.isel(t=0)).all()
    # sigmoid has the larger k(1), so its tokens move together faster
    assert data.sel(case="sigmoid-d5-bias0.1-attention+0")["gap"].isel(t=-1).mean() < relu["gap"].isel(t=-1).mean()
    assert {"synchronisation", "cosines"} <= figures(data).keys()
    assert summarise(data).blocks[-1][1][0][1][0] == "0.115"


def test_rates_are_slopes_of_the_second_half():
    t = np.linspace(0.0, 4.0, 9)
    np.testing.assert_allclose(gap_rate(t, np.where(t < 2, 1.0, np.exp(-0.7 * t))), -0.7)
    assert np.isnan(gap_rate(t, np.exp(-30 * t)))


def test_a_long_network():
    data = compute(LongNetwork(n=8, activations=["tanh"], width=64, layers=600, T=30.0, record_every=300, draws=2))
    end = data.isel(t=-1)
    # odd and without bias: x and −x move alike, so tokens gather on an axis and not at a point
    assert (end["nematic_order"] > 0.7).all() and (end["order"] < 0.99).all()
    last = data["end"][0].to_numpy()
    np.testing.assert_allclose(np.linalg.eigvalsh(last.T @ last / 8)[-1], end["nematic_order"][0, 0], rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(last.mean(axis=0)), end["order"][0, 0], rtol=1e-12)
    assert {"order"} <= figures(data).keys() and unnamed(data) == []


@pytest.mark.slow
def test_networks_tend_to_the_flow():
    data = compute(NetworkLimit(n=4, depths=[8, 32], widths=[16, 256], layers=32, finest=512, draws=12))
    assert ((data["scaling_power"] > -1.6) & (data["scaling_power"] < -0.5)).all()
    limits = data["limits"].to_numpy()
    assert (limits[-1] < limits[0]).all() and (limits[-1, 0] > limits[-1, -1]) and unnamed(data) == []
    assert {"limits", "scaling"} <= figures(data).keys()


@pytest.mark.slow
def test_many_tokens_on_one_noise_path():
    data = compute(Chaos(d=[3], n=[4, 32], many=64, records=2, steps=8, draws=6))
    assert (data["scaling_power"] < -0.4).all() and (data["scaling_power_expected"] == -0.5).all()
    assert [proved_power(d) for d in (2, 3, 6)] == [-0.5, -0.5, -2 / 6]


@pytest.mark.slow
def test_rates_under_common_noise():
    spec = CommonNoiseRates(
        d=3, weight=0.3, bias=0.5, n=4, T=1.0, records=3, steps=20, draws=300, long=20.0, long_draws=8
    )
    data = compute(spec)
    assert (data["pair_distance"] < data["pair_distance_critical"]).all() and unnamed(data) == []
    off = data["exponent"].mean("draw_long") - theory.lyapunov_exponents(spec.kernel)
    assert (np.abs(off) < 4 * data["exponent"].std("draw_long") / 8**0.5 + 0.01).all()
    off = data["token_correlation"].mean("draw") - data["token_correlation_predicted"]
    assert (np.abs(off) < 4 * data["token_correlation"].std("draw") / 300**0.5 + 1e-12).all()
    assert (data["noise_gap"].mean("draw")[1:] < data["noise_gap_bound"][1:]).all()
    assert {"noise_rates"} <= figures(data).keys()
    assert summarise(data).blocks[-1][1][0][0] == "Lyapunov exponent 1"


def test_distances_of_laws():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(400, 3)), rng.normal(size=(3000, 3))
    b[:, 2] += 1
    distances = kolmogorov_distances(a, b)
    assert distances[0] == 0 and distances[1] < critical_distance(400, 3000) < distances[2]


def test_sizes_that_do_not_fit_are_refused():
    for make, message in (
        (lambda: SynchronisationGrid(layers=7, record_every=2), "a divisor of layers=7"),
        (lambda: SynchronisationGrid(attention=[2]), "1, 0 or -1"),
        (lambda: SynchronisationGrid(activations=["step"]), "one of 'relu'"),
        (lambda: LongNetwork(layers=7, record_every=2), "a divisor of layers=7"),
        (lambda: NetworkLimit(finest=100), "divisors of finest=100"),
        (lambda: Chaos(n=[3]), "divisors of many=1024"),
    ):
        with pytest.raises(SpecError, match=message):
            make()
