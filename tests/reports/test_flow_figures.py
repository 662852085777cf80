"""Two flows, convergence, stability and long time: figures show the numbers they were given, and so do the tables."""

import numpy as np
import pytest
import xarray as xr

from transformer_flows import reports
from transformer_flows.reports.access import settling
from transformer_flows.reports.style import typeset

SERIES = ["W₂: noise ε", "energy: noise ε", "W₂: K heads"]


def two_flows(heads=(1, 4), times=6) -> xr.Dataset:
    t = np.linspace(0.0, 5.0, times)
    curve = np.exp(-t) * np.arange(1.0, 5.0).reshape(2, 2, 1)[:, : len(heads)]
    names = {"flow_dissipation": 1, "flow_slope": 2, "flow_energy_slope": 3, "flow_action": 4, "flow_energy": 5}
    variables = {name: (("flow", "heads", "t"), factor * curve) for name, factor in names.items()}
    residuals = {"flow_balance_residual": -1e-9, "flow_identity_residual": 1e-2}
    variables |= {name: (("flow", "heads", "t"), factor * curve) for name, factor in residuals.items()}
    return xr.Dataset(variables, coords={"flow": ["attention", "mobility"], "heads": list(heads), "t": t})


def scaling(own_levels=True, draws=3, fitted=True) -> xr.Dataset:
    """Errors 2·level^power in every draw but for a factor whose mean is 1; the last series has one draw only."""
    levels = np.array([[1e-3, 1e-2, 1e-1], [1e-3, 1e-2, 1e-1], [2.0, 8.0, 32.0]])
    levels = levels if own_levels else np.tile([0.5, 0.25, 0.125], (3, 1))
    power = np.array([1.0, 2.0, -0.5])
    error = 2 * levels[..., None] ** power[:, None, None] * np.linspace(0.5, 1.5, draws)
    error[2, :, 1:] = np.nan
    data = xr.Dataset({"scaling_error": (("series", "level", "draw"), error)}, coords={"series": SERIES})
    if own_levels:
        data["scaling_level"] = (("series", "level"), levels, {"long_name": "size ε or heads K"})
    else:
        data = data.assign_coords(level=("level", levels[0], {"long_name": "step τ"}))
    if fitted:
        ends = {"scaling_power": 0.0, "scaling_power_low": -0.1, "scaling_power_high": 0.1}
        for name, shift in ends.items():
            data[name] = ("series", power + shift)
        data["scaling_power_low"][2] = np.nan
        data["scaling_prefactor"] = ("series", np.full(3, 2.0))
        data["scaling_power_expected"] = ("series", np.array([1.0, np.nan, -0.5]))
    return data


def stability() -> xr.Dataset:
    t = np.linspace(0.0, 2.0, 5)
    rates = np.array([[0.5, 0.25], [-0.5, 0.125]])
    growth = np.exp(rates[..., None] * t)
    with np.errstate(over="ignore"):
        bound = np.exp(np.array([[3.0], [800.0]]) * t)
    later = np.where(t > 0, t, np.nan)
    return xr.Dataset(
        {
            "growth": (("case", "perturbation", "t"), growth),
            "growth_bound": (("case", "t"), bound),
            "growth_rate": (("case", "perturbation", "t"), np.log(growth) / later),
            "growth_rate_bound": (("case", "t"), np.array([[3.0], [800.0]]) * np.where(t > 0, 1, np.nan)),
            "permutation_gap": ("case", [1e-14, 2e-14]),
        },
        coords={"case": ["attracting, fixed", "repelling, OU"], "perturbation": [0.01, 0.1], "t": t},
    )


def long_time() -> xr.Dataset:
    t = np.linspace(0.0, 10.0, 11)
    slope = np.stack([np.exp(-t), np.ones_like(t)])
    return xr.Dataset(
        {
            "settling_slope": (("case", "t"), slope),
            "settling_energy_slope": (("case", "t"), 2 * slope),
            "settling_time": ("case", [7.0, np.nan]),
            "limit_slope": ("case", [4.5e-5, np.nan]),
            "weight_variation": ("case", [3.0, 30.0]),
            "weight_variation_tail": ("case", [1e-4, np.inf]),
            "weights_integrable": ("case", [1.0, 0.0]),
        },
        coords={"case": ["calming", "locked"], "t": t},
        attrs={"tolerance": 1e-3},
    )


def test_two_flows_has_a_column_per_flow_and_two_rows_per_head_count():
    data = two_flows()
    figure = reports.plot_two_flows(data)
    assert len(figure.axes) == 8
    assert [ax.get_ylabel() for ax in figure.axes[::2]] == ["energy per depth", "|residual|"] * 2
    upper, lower = figure.axes[5], figure.axes[7]  # mobility, H = 4
    assert upper.get_title(loc="left") == "mobility (the gradient flow), $H$ = 4"
    assert upper.get_yscale() == lower.get_yscale() == "log"
    for line, name in zip(upper.lines, ("dissipation", "slope", "energy_slope", "action"), strict=True):
        np.testing.assert_allclose(line.get_ydata(), data[f"flow_{name}"][1, 1])
    np.testing.assert_allclose(lower.lines[0].get_ydata(), -data["flow_balance_residual"][1, 1])
    np.testing.assert_allclose(lower.lines[1].get_ydata(), data["flow_identity_residual"][1, 1])


def test_a_dissipation_that_is_negative_is_counted():
    data = two_flows()
    data["flow_dissipation"][0, 1, 4:] = -1.0
    texts = [text.get_text() for ax in reports.plot_two_flows(data).axes for text in ax.texts]
    assert texts == ["2 of 6 values of $S$ ≤ 0 not shown"]


def test_the_flows_stand_side_by_side_in_the_table():
    content = reports.summarise(two_flows())
    assert content.columns == ("attention, H = 1", "mobility, H = 1", "attention, H = 4", "mobility, H = 4")
    end = np.exp(-5) * 2
    assert dict(content.rows)["G² at t = 5"] == tuple(f"{end * k:.4g}" for k in (1, 3, 2, 4))
    assert dict(content.rows)["largest |residual| of the energy-dissipation identity"][3] == "0.04"


def test_scaling_shows_draws_means_and_fitted_lines_in_a_panel_per_kind_of_level():
    data = scaling()
    figure = reports.plot_scaling(data)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title(loc="left") for ax in shown] == [r"noise $\varepsilon$", "$K$ heads"]
    dots, line, mean = shown[0].lines[:3]
    np.testing.assert_allclose(np.sort(dots.get_ydata()), np.sort(data["scaling_error"][0].to_numpy().ravel()))
    np.testing.assert_allclose(line.get_ydata(), 2 * data["scaling_level"][0])
    np.testing.assert_allclose(mean.get_ydata(), data["scaling_error"][0].mean("draw"))
    labels = [text.get_text() for text in shown[0].get_legend().get_texts()]
    assert labels == ["$W_2$\npower 1.00 [0.90, 1.10], expected 1", "energy\npower 2.00 [1.90, 2.10]"]
    # one draw: no dots, no interval
    assert [text.get_text() for text in shown[1].get_legend().get_texts()] == ["$W_2$\npower -0.50, expected -0.5"]
    assert len(shown[1].lines) == 2
    assert shown[0].get_xlabel() == shown[1].get_xlabel() == r"size $\varepsilon$ or heads $K$"
    own = data.assign(scaling_level_name=("series", ["size ε", "size ε", "heads kept K"]))
    labels = [ax.get_xlabel() for ax in reports.plot_scaling(own).axes if ax.get_visible()]
    assert labels == [r"size $\varepsilon$", "heads kept $K$"]


def test_scaling_with_one_coordinate_of_levels_and_without_a_fit():
    figure = reports.plot_scaling(scaling(own_levels=False))
    assert figure.axes[0].get_xlabel() == r"step $\tau$"
    np.testing.assert_allclose(figure.axes[0].lines[2].get_xdata(), [0.5, 0.25, 0.125])
    bare = reports.plot_scaling(scaling(fitted=False))
    assert [text.get_text() for text in bare.axes[1].get_legend().get_texts()] == ["$W_2$"]
    rows = dict(reports.summarise(scaling(own_levels=False, fitted=False)).rows)
    assert rows["W₂: K heads"] == ("–", "–", "–", "0.125 … 0.5")


def test_scaling_has_a_row_per_series():
    content = reports.summarise(scaling())
    assert content.columns == ("power", "interval", "expected", "levels")
    assert dict(content.rows)["energy: noise ε"] == ("2", "[1.9, 2.1]", "–", "0.001 … 0.1")


def test_growth_is_drawn_with_its_bound_and_both_exponents():
    data = stability()
    figure = reports.plot_bound(data)
    assert len(figure.axes) == 4
    *curves, bound = figure.axes[0].lines
    np.testing.assert_allclose([curve.get_ydata() for curve in curves], data["growth"][0])
    np.testing.assert_allclose(bound.get_ydata(), data["growth_bound"][0])
    assert figure.axes[0].get_ylim()[1] < 10 < data["growth_bound"][0, -1]
    # e^{800 t} is above the axis at the first recorded time: said, as a line it would stand upright
    assert [line.get_label() for line in figure.axes[1].lines] == ["0.01", "0.1"]
    assert figure.axes[1].texts[0].get_text() == "bound off the scale: $10^{695}$ at $t$ = 2"
    assert "bound" in [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert "4 of 10 exponents" in figure.axes[3].texts[0].get_text()
    rows = dict(reports.summarise(data).rows)
    assert rows["largest growth of W₂"] == ("2.718", "1.284")
    assert rows["smallest exponent of the bound"] == ("3", "800")
    assert len(reports.plot_bound(data[["growth", "growth_bound"]]).axes) == 2


def test_long_time_says_what_settles_and_whose_weights_are_integrable():
    data = long_time()
    figure = reports.plot_settling(data)
    calming, locked = figure.axes
    assert calming.get_title(loc="left") == "calming\nweights integrable"
    assert locked.get_title(loc="left") == "locked\nweights not integrable"
    np.testing.assert_allclose(calming.lines[0].get_ydata(), data["settling_slope"][0])
    assert calming.texts[0].get_text() == "settles at t = 7\nslope² under the limit 4.5e-05"
    assert locked.texts[0].get_text() == "does not settle"
    rows = dict(reports.summarise(data).rows)
    assert rows["settling"] == ("settles at t = 7", "does not settle")
    assert rows["… still to come"] == ("0.0001", "∞")


@pytest.mark.parametrize(
    ("slope", "window", "verdict", "why"),
    [
        (1.0, 12.0, "record too short to tell", "10, shorter than the window 12"),
        (1.0, 10.0, "does not settle", ""),
        ([1.0] * 8 + [1e-4] * 3, 6.0, "record too short to tell", "G² below the tolerance from t = 8 on"),
        ([1.0] * 3 + [1e-4] * 7 + [1.0], 8.0, "does not settle", ""),
        ([1.0] * 5 + [np.nan] * 6, 6.0, "cannot tell", "G² is not finite from t = 5 on"),
    ],
)
def test_a_record_that_ends_too_early_settles_nothing(slope, window, verdict, why):
    data = long_time().assign_attrs(window=window)
    data["settling_slope"][1] = slope
    assert settling(data)[1] == (verdict, why)
    assert dict(reports.summarise(data).rows)["settling"] == ("settles at t = 7", verdict)
    text = reports.plot_settling(data).axes[1].texts[0].get_text()
    assert text == (f"{verdict}: {why}" if why else verdict)


def test_both_slopes_show_where_they_agree():
    data = long_time()
    data["settling_energy_slope"][...] = data["settling_slope"]
    below, above = reports.plot_settling(data).axes[0].lines[:2]
    np.testing.assert_allclose(above.get_ydata(), below.get_ydata())
    assert above.is_dashed() and not below.is_dashed() and below.get_linewidth() > 1.5 * above.get_linewidth()


@pytest.mark.parametrize(
    ("data", "name"),
    [(two_flows(), "two_flows"), (scaling(), "scaling"), (stability(), "bound"), (long_time(), "settling")],
)
def test_each_feeds_its_own_figure_alone(data, name):
    figures = reports.figures(data)
    assert [*figures] == [name]
    figures[name].draw_without_rendering()


@pytest.mark.parametrize("make", [two_flows, scaling, stability, long_time], ids=lambda make: make.__name__)
def test_values_that_no_axis_can_show_are_skipped(make):
    """A run that overflowed, after its start and from its start on; matplotlib refuses axes without values."""
    for first, value in ((1, 1e300), (1, np.inf), (0, np.nan)):
        data = make()
        for name in data.data_vars:
            if not name.startswith("scaling_p"):
                data[name][..., first:] = value
        (figure,) = reports.figures(data).values()
        for ax in figure.axes:
            assert np.isfinite([ax.get_xlim(), ax.get_ylim()]).all() and ax.get_ylim()[1] < 1e299
            curves = [np.asarray(line.get_ydata()) for line in ax.lines]
            assert not any((curve > 1e299).any() for curve in curves)
    figure.draw_without_rendering()


def test_energies_that_are_not_finite_are_said_to_be_so():
    data = two_flows()
    data["flow_energy"][:, 0, -1] = [np.inf, np.nan]
    assert dict(reports.summarise(data).rows)["energy at t = 5"][:2] == ("∞", "–")


def test_the_symbols_of_a_record_become_formulas():
    assert typeset("W₂: noise ε, K heads of n") == r"$W_2$: noise $\varepsilon$, $K$ heads of $n$"
    assert typeset("energy along the flows, unnormalised") == "energy along the flows, unnormalised"
