"""Which experiments there are, and where their configs are found."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .chaos import Chaos
from .clustering_diagram import ClusteringDiagram
from .common_noise_density import CommonNoiseDensity
from .common_noise_rates import CommonNoiseRates
from .equiangular import Equiangular
from .long_network import LongNetwork
from .mean_field import MeanField
from .minimising_movements import MinimisingMovements
from .moving_heads import MovingHeads
from .network_limit import NetworkLimit
from .omega_limit import OmegaLimit
from .record import CONFIG
from .spec import Spec, SpecError, got, known_names, read_toml
from .stability import Stability
from .synchronisation_grid import SynchronisationGrid
from .two_flows import TwoFlows
from .weight_limit import WeightLimit
from .weighted_metric import WeightedMetric

KINDS: dict[str, type[Spec]] = {
    kind.kind: kind
    for kind in (
        MovingHeads,
        TwoFlows,
        WeightedMetric,
        MinimisingMovements,
        Stability,
        WeightLimit,
        OmegaLimit,
        Equiangular,
        ClusteringDiagram,
        MeanField,
        CommonNoiseDensity,
        SynchronisationGrid,
        LongNetwork,
        CommonNoiseRates,
        NetworkLimit,
        Chaos,
    )
}


def from_dict(values: Mapping[str, Any]) -> Spec:
    """The experiment of a mapping such as a parsed TOML file: its kind and the fields of that kind."""
    values = dict(values)
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise SpecError(f"kind: {got(kind, 'one of ' + ', '.join(map(repr, KINDS)))}")
    return KINDS[kind](**values)


def find(config: str | Path) -> Path:
    """The file of a config given as a path, as a run folder, or by the name of a shipped config."""
    path = Path(config)
    if path.is_dir():
        path = path / CONFIG
    if path.is_file():
        return path
    shipped = {file.stem: file for file in shipped_configs()}
    if str(config) in shipped:
        return shipped[str(config)]
    hint = known_names(str(config), [*shipped])
    raise SpecError(f"config: no file, run folder or shipped config {str(config)!r}; {hint}")


def read(config: str | Path, changes: Iterable[str] = ()) -> Spec:
    """The experiment of a config, with `key=value` changes; what it claims is claimed for its own values only."""
    changed = dict(map(_change, changes))
    return from_dict(read_toml(find(config)) | ({"claim": ""} if changed else {}) | changed)


def shipped_configs() -> list[Path]:
    """The configs of the package: beside this file when installed, at the root of the repository in a checkout."""
    here = Path(__file__).resolve().parent
    for folder in (here / "configs", here.parents[1] / "configs"):
        if folder.is_dir():
            return sorted(folder.glob("*.toml"))
    return []


def _change(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise SpecError(f"--set: {got(text, 'key=value')}")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()  # a bare word is a string
