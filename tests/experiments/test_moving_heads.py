"""Moving heads: what the units are functions of, and how the pieces are put together."""

import numpy as np
import pytest

from transformer_flows.experiments.moving_heads import MovingHeads
from transformer_flows.experiments.moving_heads_solve import draw_tokens, frame_records, noise_unit, solve_chunk, times
from transformer_flows.experiments.runner import compute, run
from transformer_flows.experiments.unit import Unit

TINY = {"n": 5, "T": 0.4, "dt": 0.05, "record_every": 1, "settle": 0.2, "snapshots": [0, 0.4], "frames": 3}
CURVES = ("slope", "dissipation_rate", "energy", "clusters", "order_parameter", "diameter")
BALANCE = ("energy_change", "weight_drift", "ito", "martingale", "dissipation", "remainder", "residual")


@pytest.fixture(scope="module")
def spec():
    return MovingHeads(heads=[2], paths=2, chunks=2, seed=5, **TINY)


@pytest.fixture(scope="module")
def data(spec):
    return compute(spec)


def test_names_dims_and_attributes(data, spec):
    assert data["tokens"].dims == ("heads", "frame_t", "token", "axis")
    for name in [*CURVES, *(f"balance_{term}" for term in BALANCE)]:
        assert data[name].dims == ("heads", "path", "t")
        assert data[name].attrs["units"] == "dimensionless"
    assert data["mean_slope"].dims == ("heads", "path")
    assert data["tokens"].attrs["snapshots"] == [0.0, 0.4]
    assert data.attrs["kind"] == "moving_heads"
    np.testing.assert_array_equal(data["t"], 0.05 * np.arange(9))
    np.testing.assert_array_equal(data["frame_t"], [0.0, 4 * 0.05, 8 * 0.05])
    assert np.isnan(data.attrs["power_exponent"])  # one head count determines no power


def test_tokens_are_on_the_sphere_and_start_at_the_drawn_ones(data, spec):
    np.testing.assert_allclose(np.linalg.norm(data["tokens"], axis=-1), 1, atol=1e-12)
    np.testing.assert_allclose(data["tokens"][0, 0], draw_tokens(spec), atol=1e-15)


def test_terms_of_the_balance_add_up_over_chunks(data):
    term = {name: data[f"balance_{name}"] for name in BALANCE}
    explained = term["weight_drift"] + term["ito"] + term["martingale"] - term["dissipation"]
    np.testing.assert_allclose(term["energy_change"] - explained, term["residual"], atol=1e-12)
    np.testing.assert_allclose(term["energy_change"], data["energy"] - data["energy"][..., 0], atol=1e-12)
    assert (np.diff(term["dissipation"][..., 3:6]) > 0).all()  # across the seam at record 4


def test_the_mean_slope_is_taken_after_settling(data):
    np.testing.assert_allclose(data["mean_slope"], data["slope"][..., 4:].mean("t"))


def test_a_path_depends_on_the_seed_and_its_number_only(data):
    alone = compute(MovingHeads(heads=[2], paths=1, chunks=2, seed=5, **TINY))
    np.testing.assert_array_equal(alone["slope"][:, 0], data["slope"][:, 0])
    assert (data["slope"][0, 0, 1:] != data["slope"][0, 1, 1:]).all()
    np.testing.assert_array_equal(data["slope"][0, 0, 0], data["slope"][0, 1, 0])  # the same x0 and D0
    other = compute(MovingHeads(heads=[2], paths=1, chunks=2, seed=6, **TINY))
    assert (other["slope"] != alone["slope"]).all()


def test_the_start_is_that_of_all_head_counts(spec):
    np.testing.assert_array_equal(draw_tokens(spec), draw_tokens(MovingHeads(heads=[7], seed=5, **TINY)))


def test_an_interrupted_run_resumes_bitwise(data, spec, tmp_path, monkeypatch):
    units = spec.units()

    def stop(earlier):
        raise KeyError("stop")

    with monkeypatch.context() as patch, pytest.raises(KeyError):
        # The second chunk of the first path fails: the first must come from the disk, with the tokens it ended in.
        patch.setattr(MovingHeads, "units", lambda self: [units[0], Unit(units[1].name, stop), *units[2:]])
        run(spec, tmp_path)
    record = run(spec, tmp_path)
    assert record.provenance["units_resumed"] == 1
    assert record.data.identical(data)


def test_after_an_early_end_later_chunks_are_blank(spec):
    first = solve_chunk(spec, 2, 0, 0, None)
    ended = first | {"end": np.full_like(first["end"], np.nan), "end_time": np.array(0.1)}
    second = solve_chunk(spec, 2, 0, 1, ended)
    assert all(np.isnan(values).all() for name, values in second.items() if name != "end_time")
    assert second["end_time"] == 0.1


@pytest.mark.parametrize("phases", ["locked", "spread"])
def test_oscillating_heads_are_not_random(phases):
    values = TINY | {"heads": [3], "weights": "oscillating", "paths": 1, "phases": phases, "d": 2, "start": "pentagon"}
    data = compute(MovingHeads(**values))
    assert np.abs(data["balance_ito"]).max() == np.abs(data["balance_martingale"]).max() == 0
    assert np.isfinite(data["slope"]).all()
    # Equal phases from different D(0): the distance to one another decays, so both cases must still differ.
    same = compute(MovingHeads(**(values | {"phases": "locked"})))
    assert np.array_equal(data["slope"], same["slope"]) == (phases == "locked")


def test_frames_hold_the_snapshots():
    spec = MovingHeads(frames=7, snapshots=[0, 16, 18, 20])
    frames = times(spec, frame_records(spec))
    assert len(frames) == 9
    assert {0.0, 16.0, 18.0, 20.0} <= set(frames.tolist())


def test_pentagon_and_cross_polytope():
    pentagon = np.asarray(draw_tokens(MovingHeads(d=2, n=500, start="pentagon", start_noise=0)))
    angles = np.unique(np.round(np.arctan2(pentagon[:, 1], pentagon[:, 0]) * 5 / (2 * np.pi), 6) % 5)
    np.testing.assert_allclose(angles, range(5), atol=1e-6)
    octahedron = np.asarray(draw_tokens(MovingHeads(n=500, start_noise=0)))
    assert len(np.unique(octahedron, axis=0)) == 6
    spread = np.asarray(draw_tokens(MovingHeads(n=500)))
    np.testing.assert_allclose(np.sort(np.abs(spread), axis=1)[:, :2].mean(), 0.05 * np.sqrt(2 / np.pi), rtol=0.1)


def test_halved_steps_refine_the_same_noise():
    assert noise_unit(0.005) == 0.64
    assert noise_unit(0.0025) == noise_unit(0.005)


def test_quantities_that_are_not_asked_for_are_not_recorded():
    data = compute(MovingHeads(**TINY, paths=1, heads=[1], quantities=["slope"]))
    assert {"slope", "mean_slope", "tokens", "end_time"} == set(data.data_vars)
    balance = compute(MovingHeads(**TINY, paths=1, heads=[1], quantities=["balance"]))
    assert "balance_residual" in balance and "mean_slope" not in balance and "power_exponent" not in balance.attrs
