"""Curves show the numbers they were given, on the right axis, for every path, with the mean that the legend names."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from transformer_flows import reports
from transformer_flows.reports.access import mean_over_paths

from .synthetic import moving_heads


def bold(ax):
    return [line for line in ax.lines if line.get_linewidth() > 1]


def thin(ax):
    return [line for line in ax.lines if line.get_linewidth() < 1]


def test_slope_shows_every_path_and_the_arithmetic_mean_on_a_log_axis():
    data = moving_heads()
    figure = reports.plot_slope(data)
    assert len(figure.axes) == 2
    for ax, name in zip(figure.axes, ("slope", "dissipation_rate"), strict=True):
        assert ax.get_yscale() == "log"
        assert len(thin(ax)) == 9
        assert len(bold(ax)) == 3
        np.testing.assert_allclose(thin(ax)[4].get_ydata(), data[name][1, 1])
        np.testing.assert_allclose(bold(ax)[1].get_ydata(), data[name][1].mean("path"))
    legend = figure.axes[-1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["$H$ = 1", "$H$ = 10", "$H$ = 100"]
    assert "arithmetic mean" in legend.get_title().get_text()
    assert "$t$ (dimensionless)" in figure.axes[0].get_xlabel()


def test_slope_counts_the_values_that_a_log_axis_cannot_show():
    data = moving_heads()
    data["dissipation_rate"][0, 0, 2] = -1.0
    data["dissipation_rate"][0, 1, 3] = 0.0
    figure = reports.plot_slope(data[["dissipation_rate"]])
    assert [text.get_text() for text in figure.axes[0].texts] == ["2 of 63 values ≤ 0 not shown"]
    assert np.isnan(thin(figure.axes[0])[0].get_ydata()[2])
    np.testing.assert_allclose(bold(figure.axes[0])[0].get_ydata()[2], data["dissipation_rate"][0, :, 2].mean())


def test_one_path_has_no_thin_lines_and_one_time_is_a_dot():
    data = moving_heads(heads=(10,), paths=1, times=1)
    ax = reports.plot_energy(data).axes[0]
    assert len(ax.lines) == 1
    assert ax.lines[0].get_marker() == "o"
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0.0, data["energy"].item()]])


def test_missing_values_are_left_out_of_the_mean_and_said():
    data = moving_heads()
    data["energy"][1, 0, 4:] = np.nan
    ax = reports.plot_energy(data).axes[0]
    assert [text.get_text() for text in ax.texts] == ["1 of 9 paths have missing values"]
    np.testing.assert_allclose(bold(ax)[1].get_ydata(), data["energy"][1].mean("path", skipna=True))


def test_mean_over_no_finite_path_is_missing_without_a_warning():
    paths = np.array([[1.0, np.nan], [3.0, np.nan]])
    np.testing.assert_array_equal(mean_over_paths(paths), [2.0, np.nan])


def test_energy_draws_into_given_axes():
    figure = Figure()
    ax = figure.subplots()
    assert reports.plot_energy(moving_heads(), ax=ax) is figure
    assert len(bold(ax)) == 3


def test_clusters_are_steps_with_whole_numbers():
    data = moving_heads()
    figure = reports.plot_clusters(data)
    assert len(figure.axes) == 3
    assert {line.get_drawstyle() for line in figure.axes[0].lines} == {"steps-post"}
    assert all(float(tick).is_integer() for tick in figure.axes[0].get_yticks())
    np.testing.assert_allclose(thin(figure.axes[0])[0].get_ydata(), data["clusters"][0, 0])
    assert len(reports.plot_clusters(data[["diameter"]]).axes) == 1


def test_balance_terms_add_up_and_residuals_are_those_given():
    data = moving_heads()
    figure = reports.plot_balance(data, path=2)
    upper, lower = figure.axes[1], figure.axes[4]  # H = 10
    lines = {line.get_label(): line.get_ydata() for line in bold(upper)}
    change = lines.pop("$E(t)-E(0)$")
    assert set(lines) == {"weight drift", "Itô term", "martingale", "− dissipation"}
    np.testing.assert_allclose(change, sum(lines.values()) + data["balance_residual"][1, 2].to_numpy())
    assert lower.get_yscale() == "log"
    rms = np.sqrt((data["balance_residual"][1] ** 2).mean("path"))
    residual, closed, scale = bold(lower)
    np.testing.assert_allclose(residual.get_ydata()[1:], rms[1:])
    np.testing.assert_allclose(closed.get_ydata()[1:], 1e-3 * data["t"][1:], rtol=1e-6)
    assert scale.get_linestyle() == ":"
    assert len(thin(lower)) == 6


def test_balance_without_noise_needs_neither_ito_nor_martingale():
    data = moving_heads()[["balance_energy_change", "balance_weight_drift", "balance_dissipation", "balance_residual"]]
    figure = reports.plot_balance(data)
    assert len(bold(figure.axes[0])) == 3
    assert [line.get_label() for line in bold(figure.axes[3])] == ["residual", "$|E(t)-E(0)|$"]


def test_terms_and_remainder_that_are_zero_are_left_out():
    data = moving_heads(paths=1)
    for name in ("ito", "martingale", "remainder"):
        data[f"balance_{name}"][...] = 0.0
    figure = reports.plot_balance(data)
    assert [line.get_label() for line in bold(figure.axes[0])] == ["$E(t)-E(0)$", "weight drift", "− dissipation"]
    assert [line.get_label() for line in bold(figure.axes[3])] == ["residual", "$|E(t)-E(0)|$"]
    assert "the same with the realised noise term" not in dict(reports.summarise(data).rows)


def test_sweep_shows_paths_mean_and_power_law():
    data = moving_heads()
    ax = reports.plot_sweep(data).axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    dots, law, mean = ax.lines
    np.testing.assert_allclose(np.sort(dots.get_ydata()), np.sort(data["mean_slope"].to_numpy().ravel()))
    np.testing.assert_allclose(law.get_ydata(), 1.2 / law.get_xdata())
    np.testing.assert_allclose(mean.get_ydata(), data["mean_slope"].mean("path"))
    assert "[-1.10, -0.90]" in law.get_label()
    assert len(ax.collections) == 1
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "10", "100"]


@pytest.mark.parametrize("exponent", [None, np.nan])
def test_sweep_without_a_fit_shows_the_numbers_alone(exponent):
    data = moving_heads()
    data.attrs = {} if exponent is None else {"power_exponent": exponent}
    assert len(reports.plot_sweep(data).axes[0].lines) == 2


def test_curves_over_all_floats_are_drawn_as_far_as_an_axis_goes():
    """Noise beyond reason: the slope falls to 1e-300, and the residual grows until its square overflows."""
    data = moving_heads()
    data["slope"][...] = np.geomspace(1e-300, 1e300, data.sizes["t"])
    data["balance_residual"][...] = np.geomspace(1e-300, 1e300, data.sizes["t"])
    for figure, panel in ((reports.plot_slope(data), 0), (reports.plot_balance(data), 3)):
        figure.draw_without_rendering()  # matplotlib's ticks reach far beyond the values
        ax = figure.axes[panel]
        shown = np.concatenate([np.ravel(line.get_ydata()) for line in ax.lines])
        assert ax.get_yscale() == "log" and np.isfinite(shown).any() and not (shown > 1e100).any()
