"""Growth rates and densities, from formulas."""

import numpy as np
import pytest
import xarray as xr

from transformer_flows import reports
from transformer_flows.reports.mean_field import FINE, HEIGHTS


def mean_field(axes=2, times=5, modes=3):
    angle = 2 * np.pi * (np.arange(24) + 0.25) / 24
    height = np.tile([-0.7, -0.1, 0.6], 8) if axes == 3 else np.zeros(24)
    x = np.stack([np.sqrt(1 - height**2) * np.cos(angle), np.sqrt(1 - height**2) * np.sin(angle), height], axis=1)
    predicted = np.outer([1.0, 100.0], 2.0 ** -np.arange(modes))
    t = np.linspace(0.0, 1.0, times)
    return xr.Dataset(
        {
            "rate": (("case", "mode"), predicted * (1 + 1e-6)),
            "rate_predicted": (("case", "mode"), predicted),
            "density": (("t", "node"), 1 + t[:, None] * x[:, 0] * (1 + x[:, 1]), {"degree": 2}),
            "node_x": (("node", "axis"), x[:, :axes]),
        },
        coords={"case": ["softmax, β = 1", "unnormalised, β = 9"], "mode": np.arange(1, modes + 1), "t": t},
    )


def test_rates_are_dots_over_lines_with_their_relative_error():
    data = mean_field()
    upper, lower = reports.plot_growth_rates(data).axes
    assert upper.get_yscale() == lower.get_yscale() == "log"
    line, dots = upper.lines[2:4]
    np.testing.assert_allclose(line.get_ydata(), data["rate_predicted"][1])
    np.testing.assert_allclose(dots.get_ydata(), data["rate"][1])
    assert (line.get_linestyle(), dots.get_linestyle()) == ("-", "None")
    np.testing.assert_allclose(lower.lines[1].get_ydata(), 1e-6, rtol=1e-6)


def test_densities_on_the_circle_are_curves_over_the_angle():
    data = mean_field()
    ax = reports.plot_density(data).axes[0]
    assert len(ax.lines) == 5
    angle, rho = ax.lines[-1].get_data()
    assert len(angle) == FINE > 10 * data.sizes["node"] and np.all(np.diff(angle) > 0)
    # the density itself between the nodes too, not lines from node to node
    np.testing.assert_allclose(rho, 1 + np.cos(angle) * (1 + np.sin(angle)), atol=1e-12)


def test_densities_on_the_sphere_are_maps_with_one_scale():
    data = mean_field(axes=3)
    figure = reports.plot_density(data)
    maps = [ax.collections[0] for ax in figure.axes[:4]]
    assert len(figure.axes) == 5  # four maps and the colour bar
    angle, height = np.meshgrid(np.linspace(-np.pi, np.pi, FINE), np.linspace(-1, 1, HEIGHTS))
    x, y = np.sqrt(1 - height**2) * np.array([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(maps[-1].get_array(), 1 + x * (1 + y), atol=1e-12)
    assert len({mesh.get_clim() for mesh in maps}) == 1
    np.testing.assert_allclose(maps[0].get_clim(), ((1 + x * (1 + y)).min(), (1 + x * (1 + y)).max()))


def test_times_that_were_not_reached_are_blank():
    data = mean_field()
    data["density"][-1, 3:] = np.nan
    *_, before, last = reports.plot_density(data).axes[0].lines
    assert np.isfinite(before.get_ydata()).all() and np.isnan(last.get_ydata()).all()


@pytest.mark.parametrize("axes", [2, 3])
def test_a_run_that_reached_nothing_is_reported_with_dashes(axes):
    nothing = {name: ("t", [np.nan] * 3) for name in ("density_least", "density_tail", "density_mass")}
    data = mean_field(axes=axes, times=3).assign(nothing)
    for name in ("rate", "density"):
        data[name][...] = np.nan
    for figure in reports.figures(data).values():
        figure.draw_without_rendering()
    (_, rates), (_, density) = reports.summarise(data).blocks
    assert dict(rates)["largest relative error"] == ("–", "–")
    assert [cells for _, cells in density] == [("–",)] * 3


def test_the_summary_holds_the_growth_rates():
    columns, rows = reports.summarise(mean_field()).blocks[0]
    assert columns == ["softmax, β = 1", "unnormalised, β = 9"]
    cells = dict(rows)
    assert len(rows) == 7 and cells["largest relative error"] == ("1e-06", "1e-06")
    assert cells["mode 2: predicted"] == ("0.5", "50")
    data = mean_field()
    data["rate"][1, 1], data["rate"][0, 1] = 51.0, np.nan
    cells = dict(reports.summarise(data).rows)
    assert cells["mode 2: growth rate"] == ("–", "51")
    assert cells["largest relative error"] == ("–", "0.02")


def test_the_summary_says_whether_the_basis_resolves_the_density():
    """At the worst time of those that a run reached."""
    assert len(reports.summarise(mean_field()).blocks) == 1
    parts = {"density_least": ("t", [0.4, -0.25, np.nan]), "density_tail": ("t", [1e-3, 0.12, np.nan])}
    columns, rows = reports.summarise(mean_field(times=3).assign(parts)).blocks[-1]
    assert columns == ["density"]
    assert [cells for _, cells in rows] == [("-0.25",), ("0.12",)]


@pytest.mark.parametrize("axes", [2, 3])
def test_the_gallery_draws_them_with_one_time_and_one_mode(axes):
    figures = reports.figures(mean_field(axes=axes, times=1, modes=1))
    assert list(figures) == ["growth_rates", "density"]
    for figure in figures.values():
        figure.draw_without_rendering()
