"""The heat maps of a density under common noise, from formulas."""

import numpy as np
import xarray as xr

from transformer_flows import reports


def noisy(times=5):
    t, angle = np.linspace(0.0, 1.0, times), np.linspace(-3.0, 3.0, 13)
    density = 1 + 0.5 * np.cos(angle - 2 * t[:, None])
    return xr.Dataset(
        {
            "noisy_density": (("t", "angle"), density),
            "noisy_tokens": (("t", "bin"), 1.5 * density[:, ::2], {"n": 300}),
        },
        coords={"t": t, "angle": angle, "bin": angle[::2]},
    )


def test_density_and_tokens_stand_side_by_side_in_the_scale_of_the_density():
    data = noisy()
    figure = reports.plot_noisy_density(data)
    density, tokens, bar = figure.axes
    assert (density.get_title(loc="left"), tokens.get_title(loc="left")) == ("density", "300 tokens")
    left, right = density.collections[0], tokens.collections[0]
    np.testing.assert_allclose(left.get_array(), data["noisy_density"].T)
    np.testing.assert_allclose(right.get_array(), data["noisy_tokens"].T)
    assert left.get_clim() == right.get_clim() == (0.0, data["noisy_density"].max())
    assert bar.get_ylabel() == "relative to the uniform measure"


def test_the_gallery_draws_it_with_one_time():
    figures = reports.figures(noisy(times=1))
    assert list(figures) == ["noisy_density"]
    figures["noisy_density"].draw_without_rendering()


def test_the_summary_has_the_largest_change_of_the_mass():
    parts = {"density_least": ("t", [0.4, 0.1]), "density_tail": ("t", [0.0, 0.1])}
    rows = dict(reports.summarise(noisy(times=2).assign(parts | {"density_mass": ("t", [1.0, 0.75])})).rows)
    assert rows["largest change of the mass"] == ("0.25",)
