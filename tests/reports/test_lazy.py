"""Drawing libraries stay out of a simulation, and out of the user's settings."""

import subprocess
import sys

import matplotlib as mpl
import pytest

from transformer_flows import reports

from .synthetic import moving_heads


def test_importing_the_package_imports_no_drawing_library():
    code = "import sys, transformer_flows.reports; print({'matplotlib', 'plotly'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def test_every_public_name_is_found_and_an_unknown_one_is_refused():
    assert all(callable(getattr(reports, name)) for name in dir(reports) if name != "DRAWINGS")
    with pytest.raises(AttributeError, match="plot_nothing"):
        _ = reports.plot_nothing


def test_drawing_neither_uses_nor_changes_global_settings():
    with mpl.rc_context({"lines.linewidth": 17.0, "axes.facecolor": "black"}):
        before = dict(mpl.rcParams)
        figure = reports.plot_energy(moving_heads())
        assert dict(mpl.rcParams) == before
        assert figure.axes[0].get_facecolor()[:3] == (1.0, 1.0, 1.0)
        assert max(line.get_linewidth() for line in figure.axes[0].lines) < 17.0


def test_figures_are_not_registered_with_pyplot():
    from matplotlib import pyplot

    reports.plot_energy(moving_heads())
    assert pyplot.get_fignums() == []
