"""Records: what is written is what is read, and a reader never sees half a file."""

import json
import math

import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from hypothesis import given, settings, strategies as st

from transformer_flows import load
from transformer_flows.experiments.files import (
    decode_attribute,
    encode_attribute,
    from_json,
    plain,
    to_json,
    write_atomically,
)
from transformer_flows.experiments.record import read_dataset, write_dataset

NAN, INF = math.nan, math.inf

ATTRIBUTES = {
    "text": "β = 1, “quoted”",
    "looks_like_json": "json:[1]",
    "empty": "",
    "number": 3,
    "big": 2**70,
    "float": 0.1,
    "nan": NAN,
    "inf": -INF,
    "none": None,
    "flag": True,
    "numpy_flag": np.bool_(False),
    "numpy_float": np.float32(0.5),
    "jax_scalar": jnp.float64(2.5),
    "jax_array": jnp.arange(3),
    "one_number": [0.5],
    "numbers": (0.0, 16.0, 18.0),
    "mixed": [1, 2.5],
    "no_numbers": [],
    "nested": {"D": np.eye(2), "beta": [NAN, INF, -INF], "inner": {"flag": None}},
    "words": ["a", "b"],
}


def equal(a, b) -> bool:
    """Equality with NaN equal to itself, and 1 different from 1.0 and True."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and (a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b)))


def test_attributes_survive_the_file(tmp_path):
    data = xarray.Dataset({"x": ("t", np.arange(3.0), ATTRIBUTES)}, attrs=ATTRIBUTES)
    write_dataset(tmp_path / "record.nc", data)
    read = read_dataset(tmp_path / "record.nc")
    for part in (read, read["x"]):
        for name, value in ATTRIBUTES.items():
            assert equal(part.attrs[name], plain(value)), name


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(max_examples=50, deadline=None)
@given(values)
def test_plain_values_survive_as_attributes_and_as_json(value):
    assert equal(decode_attribute(encode_attribute(value)), value)
    assert equal(from_json(to_json(value)), value)
    json.loads(to_json(value), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_arrays_come_back_bitwise_with_dims_and_units(tmp_path):
    rng = np.random.default_rng(0)
    units = {"units": "dimensionless"}
    data = xarray.Dataset(
        {"x": (("heads", "t"), rng.normal(size=(2, 3)), units), "y": ("t", np.float32([1, NAN, INF]), units)},
        coords={"heads": [1, 10], "t": ("t", [0.0, 0.1, 0.2], units), "law": ["softmax", "unnormalised"]},
    )
    write_dataset(tmp_path / "record.nc", data)
    assert read_dataset(tmp_path / "record.nc").identical(data)


def test_bfloat16_is_widened(tmp_path):
    values = jnp.asarray([1.5, 2.0], jnp.bfloat16)
    write_dataset(tmp_path / "record.nc", xarray.Dataset({"x": ("t", np.asarray(values))}))
    read = read_dataset(tmp_path / "record.nc")["x"]
    assert read.dtype == np.float32 and read.to_numpy().tolist() == [1.5, 2.0]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "file"
    write_atomically(target, lambda path: path.write_text("old"))

    def fail(path):
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(target, fail)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_loading_what_is_not_a_finished_run(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no config.toml and no record.nc.*not the folder of a run"):
        load(tmp_path)
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(FileNotFoundError, match=r"not finished; continue it with: transformer-flows run"):
        load(tmp_path)
