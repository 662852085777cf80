"""A record: what a finished run leaves behind, and how it is read again."""

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .files import decode_attribute, encode_attribute, from_json, write_atomically

if TYPE_CHECKING:
    import xarray

CONFIG, DATA, PROVENANCE = "config.toml", "record.nc", "provenance.json"


@dataclasses.dataclass(frozen=True)
class Record:
    """Named arrays with the values they came from.

    `data` is an `xarray.Dataset` with named dims, and units in the attributes of its variables; `config` holds the
    values of the experiment, with its kind; `provenance` says with what and when it was computed.
    """

    data: "xarray.Dataset"
    config: Mapping[str, Any]
    provenance: Mapping[str, Any]
    folder: Path


def load(folder: str | Path) -> Record:
    """The record of a finished run.

    Raises `FileNotFoundError` if the folder holds no finished run.
    """
    folder = Path(folder)
    missing = [name for name in (CONFIG, DATA, PROVENANCE) if not (folder / name).is_file()]
    if missing:
        hint = (
            f"The run is not finished; continue it with: transformer-flows run {folder}"
            if CONFIG not in missing
            else "It is not the folder of a run."
        )
        raise FileNotFoundError(f"{folder} has no {' and no '.join(missing)}. {hint}")
    return Record(
        data=read_dataset(folder / DATA),
        config=tomllib.loads((folder / CONFIG).read_text(encoding="utf-8")),
        provenance=from_json((folder / PROVENANCE).read_text(encoding="utf-8")),
        folder=folder,
    )


def write_dataset(path: Path, data: "xarray.Dataset") -> None:
    """Write NetCDF-4. Attributes of any plain kind are kept; dtypes that NetCDF lacks (bfloat16) are widened."""
    data = data.copy()
    data.attrs = {name: encode_attribute(value) for name, value in data.attrs.items()}
    for name in data.variables:
        variable = data[name].variable
        attributes = {key: encode_attribute(value) for key, value in variable.attrs.items()}
        data[name] = (variable.dims, _storable(variable.values), attributes)
    write_atomically(path, lambda temporary: data.to_netcdf(temporary, engine="h5netcdf"))


def read_dataset(path: Path) -> "xarray.Dataset":
    """Read all of a NetCDF-4 file into memory and close it."""
    import xarray

    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as file:
        data = file.load()
    for part in (data, *data.variables.values()):
        part.attrs = {name: decode_attribute(value) for name, value in part.attrs.items()}
    return data


def _storable(values: np.ndarray) -> np.ndarray:
    """bfloat16 and the 8-bit floats are NumPy extension types, of kind "V"; float32 holds each of their values."""
    return values.astype(np.float32) if values.dtype.kind == "V" else values
