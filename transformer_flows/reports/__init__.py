"""Reports: a run's Dataset becomes tables, figures, an animation and one self-contained HTML page.

    figures(data)                                      every figure that the variables of `data` can feed
    summary(data)                                      a rich table
    interactive_tokens(data, heads=10)                 a plotly figure with play button and slider
    animate(data, "tokens.gif")                        the same as a GIF
    write_report(data, config, provenance, folder)     PNG files and index.html

`data` is an `xarray.Dataset`; `access.py` lists the variables. A figure is drawn when its variables are there, whatever
experiment they come from. Each `plot_…` function can be called alone, for instance in a notebook.

Drawing libraries take long to import and a simulation needs none of them, so names are looked up on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .animation import animate as animate
    from .balance import plot_balance as plot_balance
    from .bound import plot_bound as plot_bound
    from .diagram import plot_diagram as plot_diagram
    from .distances import plot_distances as plot_distances
    from .equiangular import plot_equiangular as plot_equiangular, plot_hitting_times as plot_hitting_times
    from .gallery import DRAWINGS as DRAWINGS, Drawing as Drawing, figures as figures
    from .interactive import interactive_tokens as interactive_tokens
    from .layers import (
        plot_cosines as plot_cosines,
        plot_order as plot_order,
        plot_synchronisation as plot_synchronisation,
    )
    from .limits import plot_limits as plot_limits
    from .mean_field import plot_density as plot_density, plot_growth_rates as plot_growth_rates
    from .movements import plot_movements as plot_movements
    from .noise import plot_noise_rates as plot_noise_rates
    from .noisy_density import plot_noisy_density as plot_noisy_density
    from .page import write_report as write_report
    from .scaling import plot_scaling as plot_scaling
    from .settling import plot_settling as plot_settling
    from .snapshots import plot_snapshots as plot_snapshots
    from .sweep import plot_sweep as plot_sweep
    from .table import summarise as summarise, summary as summary
    from .time_series import (
        plot_clusters as plot_clusters,
        plot_energy as plot_energy,
        plot_slope as plot_slope,
    )
    from .two_flows import plot_two_flows as plot_two_flows

_HOME = {
    "animate": "animation",
    "plot_balance": "balance",
    "plot_bound": "bound",
    "plot_diagram": "diagram",
    "plot_distances": "distances",
    "plot_equiangular": "equiangular",
    "plot_hitting_times": "equiangular",
    "DRAWINGS": "gallery",
    "Drawing": "gallery",
    "figures": "gallery",
    "interactive_tokens": "interactive",
    "plot_cosines": "layers",
    "plot_limits": "limits",
    "plot_noise_rates": "noise",
    "plot_order": "layers",
    "plot_synchronisation": "layers",
    "plot_density": "mean_field",
    "plot_growth_rates": "mean_field",
    "write_report": "page",
    "plot_movements": "movements",
    "plot_noisy_density": "noisy_density",
    "plot_scaling": "scaling",
    "plot_settling": "settling",
    "plot_snapshots": "snapshots",
    "plot_sweep": "sweep",
    "summarise": "table",
    "summary": "table",
    "plot_clusters": "time_series",
    "plot_energy": "time_series",
    "plot_slope": "time_series",
    "plot_two_flows": "two_flows",
}


def __getattr__(name: str):
    """Import the module that holds `name`, on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(_HOME)
