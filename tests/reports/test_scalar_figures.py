"""Equiangular curves, hitting times and the clustering diagram."""

import numpy as np
import pytest

from transformer_flows import reports
from transformer_flows.reports.diagram import edges

from .synthetic import diagram, equiangular


def test_equiangular_shows_measured_over_predicted_and_their_distance():
    data = equiangular()
    figure = reports.plot_equiangular(data)
    upper, lower = figure.axes[1], figure.axes[3]  # the second law
    assert upper.get_title(loc="left") == "unnormalisé"
    assert len(upper.lines) == 6
    np.testing.assert_allclose(upper.lines[2].get_ydata(), data["cosine_predicted"][1, 1])
    np.testing.assert_allclose(upper.lines[3].get_ydata(), data["cosine"][1, 1])
    assert lower.get_yscale() == "log"
    np.testing.assert_allclose(lower.lines[1].get_ydata(), 1e-6, rtol=1e-6)


def test_many_inverse_temperatures_get_a_short_legend():
    figure = reports.plot_equiangular(equiangular(betas=tuple(np.linspace(0, 6, 30))))
    assert len(figure.axes[1].get_legend().get_texts()) == 8
    assert len(figure.axes[1].lines) == 60


def test_hitting_times_are_dots_over_lines_and_gaps_where_nothing_was_hit():
    data = equiangular()
    ax = reports.plot_hitting_times(data).axes[0]
    assert ax.get_yscale() == "log"
    line, dots = ax.lines[:2]
    np.testing.assert_allclose(line.get_ydata(), data["hitting_time_predicted"][0])
    np.testing.assert_allclose(dots.get_ydata(), data["hitting_time"][0])
    assert (line.get_linestyle(), dots.get_linestyle()) == ("-", "None")
    assert np.isnan(dots.get_ydata()[-1])


def test_diagram_shows_the_probabilities_with_the_predicted_curve():
    data = diagram()
    figure = reports.plot_diagram(data)
    ax = figure.axes[1]
    mesh = ax.collections[0]
    np.testing.assert_allclose(mesh.get_array(), data["clustered"][1])
    assert mesh.get_clim() == (0.0, 1.0)
    np.testing.assert_allclose(ax.lines[-1].get_xdata(), data["clustering_time_predicted"][1])
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), data["beta"])
    assert ax.get_xlim() == (-3.75, 33.75)
    assert len(figure.axes) == 3  # two maps and the colour bar


def test_diagram_without_prediction_has_no_curve():
    assert not reports.plot_diagram(diagram()[["clustered"]]).axes[0].lines


@pytest.mark.parametrize("data", [equiangular(betas=(1.0,), times=1), diagram(dimensions=(8,), betas=(1.0,), times=1)])
def test_one_value_along_every_dimension_can_be_drawn(data):
    for figure in reports.figures(data).values():
        figure.draw_without_rendering()


def test_cells_lie_around_their_centres():
    np.testing.assert_allclose(edges(np.array([0.0, 1.0, 4.0])), [-0.5, 0.5, 2.5, 5.5])
    np.testing.assert_allclose(edges(np.array([3.0])), [2.5, 3.5])
