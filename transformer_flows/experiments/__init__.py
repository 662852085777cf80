"""Experiments: a spec from TOML or Python becomes a record of named arrays, with where they come from.

    record = load("runs/ou_heads_s2")                  an xarray.Dataset with its config and provenance
    spec = read("ou_heads_s2", ["heads=[1, 10]"])      a shipped config (or a file) with changes
    record = run(spec, "runs/mine")                    compute, or continue, the run in a folder
    data = compute(MovingHeads(n=50, paths=2))         the arrays alone, without files

Everything but `load` is looked up on first use: reading a record needs no simulation code.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .record import Record as Record, load as load

if TYPE_CHECKING:
    from .catalogue import from_dict as from_dict, read as read
    from .chaos import Chaos as Chaos
    from .clustering_diagram import ClusteringDiagram as ClusteringDiagram
    from .common_noise_density import CommonNoiseDensity as CommonNoiseDensity
    from .common_noise_rates import CommonNoiseRates as CommonNoiseRates
    from .equiangular import Equiangular as Equiangular
    from .long_network import LongNetwork as LongNetwork
    from .mean_field import MeanField as MeanField
    from .minimising_movements import MinimisingMovements as MinimisingMovements
    from .moving_heads import MovingHeads as MovingHeads
    from .network_limit import NetworkLimit as NetworkLimit
    from .omega_limit import OmegaLimit as OmegaLimit
    from .runner import RunInterrupted as RunInterrupted, compute as compute, run as run
    from .spec import Spec as Spec, SpecError as SpecError
    from .stability import Stability as Stability
    from .synchronisation_grid import SynchronisationGrid as SynchronisationGrid
    from .two_flows import TwoFlows as TwoFlows
    from .weight_limit import WeightLimit as WeightLimit
    from .weighted_metric import WeightedMetric as WeightedMetric

_HOME = {
    "from_dict": "catalogue",
    "read": "catalogue",
    "Chaos": "chaos",
    "ClusteringDiagram": "clustering_diagram",
    "CommonNoiseDensity": "common_noise_density",
    "CommonNoiseRates": "common_noise_rates",
    "Equiangular": "equiangular",
    "MinimisingMovements": "minimising_movements",
    "LongNetwork": "long_network",
    "MeanField": "mean_field",
    "MovingHeads": "moving_heads",
    "NetworkLimit": "network_limit",
    "OmegaLimit": "omega_limit",
    "RunInterrupted": "runner",
    "compute": "runner",
    "run": "runner",
    "Spec": "spec",
    "SpecError": "spec",
    "Stability": "stability",
    "SynchronisationGrid": "synchronisation_grid",
    "TwoFlows": "two_flows",
    "WeightLimit": "weight_limit",
    "WeightedMetric": "weighted_metric",
}


def __getattr__(name: str):
    """Import the module that holds `name`, on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*_HOME, "Record", "load"])
