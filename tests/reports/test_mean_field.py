"""Growth rates and densities, from formulas."""

import numpy as np
import pytest
import xarray as xr

from transformer_flows import reports


def mean_field(axes=2, times=5, modes=3):
    angle = 2 * np.pi * (np.arange(24) + 0.25) / 24
    height = np.repeat([-0.7, -0.1, 0.6], 8) if axes == 3 else np.zeros(24)
    x = np.stack([np.sqrt(1 - height**2) * np.cos(angle), np.sqrt(1 - height**2) * np.sin(angle), height], axis=1)
    predicted = np.outer([1.0, 100.0], 2.0 ** -np.arange(modes))
    t = np.linspace(0.0, 1.0, times)
    return xr.Dataset(
        {
            "rate": (("case", "mode"), predicted * (1 + 1e-6)),
            "rate_predicted": (("case", "mode"), predicted),
            "density": (("t", "node"), 1 + t[:, None] * x[:, 0]),
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
    assert np.all(np.diff(angle) > 0)
    np.testing.assert_allclose(rho, 1 + np.cos(angle))


def test_densities_on_the_sphere_are_maps_with_one_scale():
    data = mean_field(axes=3)
    figure = reports.plot_density(data)
    maps = [ax.collections[0] for ax in figure.axes[:4]]
    assert len(figure.axes) == 5  # four maps and the colour bar
    np.testing.assert_allclose(maps[-1].get_array()[24:48], data["density"][-1])
    assert len({mesh.get_clim() for mesh in maps}) == 1
    assert maps[0].get_clim() == (0.0, data["density"].max())


@pytest.mark.parametrize("axes", [2, 3])
def test_the_gallery_draws_them_with_one_time_and_one_mode(axes):
    figures = reports.figures(mean_field(axes=axes, times=1, modes=1))
    assert list(figures) == ["growth_rates", "density"]
    for figure in figures.values():
        figure.draw_without_rendering()
