"""One way in: TOML, `--set` and Python refuse the same values with the same words."""

import dataclasses
import math
import re
import tomllib

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from transformer_flows.experiments import catalogue
from transformer_flows.experiments.catalogue import from_dict, read, shipped_configs
from transformer_flows.experiments.moving_heads import MovingHeads
from transformer_flows.experiments.spec import SpecError, read_toml, steps_in

from .toy import Toy

WRONG = [
    ("n", "0", 0, "n: got 0; allowed: an integer at least 1"),
    ("n", "2.0", 2.0, "n: got 2.0; allowed: an integer at least 1"),
    ("n", "true", True, "n: got True; allowed: an integer at least 1"),
    ("n", '"4"', "4", "n: got '4'; allowed: an integer at least 1"),
    ("dt", "0", 0, "dt: got 0; allowed: a finite number greater than 0"),
    ("dt", "-0.1", -0.1, "dt: got -0.1; allowed: a finite number greater than 0"),
    ("beta", "inf", math.inf, "beta: got inf; allowed: a finite number at least 0"),
    ("beta", "nan", math.nan, "beta: got nan; allowed: a finite number at least 0"),
    ("beta", "-1", -1, "beta: got -1; allowed: a finite number at least 0"),
    ("sizes", "[]", [], "sizes: got []; allowed: a non-empty list of distinct entries, each an integer at least 1"),
    ("sizes", "[1, 0]", [1, 0], "sizes: got [1, 0]; allowed: a non-empty list of distinct entries, each an"),
    ("sizes", "[2, 2]", [2, 2], "sizes: got [2, 2]; allowed: a non-empty list of distinct entries, each an"),
    ("law", '"softmx"', "softmx", "law: got 'softmx'; allowed: one of 'softmax', 'unnormalised'"),
    ("exact", "1", 1, "exact: got 1; allowed: true or false"),
    ("dtype", '"float16"', "float16", "dtype: got 'float16'; allowed: one of 'float64', 'float32'"),
    ("seed", "-1", -1, "seed: got -1; allowed: an integer at least 0"),
    ("betta", "1", 1, "betta: unknown key; did you mean 'beta'?"),
    ("n", "13", 13, "n: got 13; allowed: another number"),
]


@pytest.fixture(autouse=True)
def toy_is_a_kind(monkeypatch):
    monkeypatch.setitem(catalogue.KINDS, "toy", Toy)


@pytest.mark.parametrize(("key", "text", "value", "message"), WRONG)
def test_the_same_error_three_ways(key, text, value, message, tmp_path):
    file, good = tmp_path / "wrong.toml", tmp_path / "good.toml"
    file.write_text(f'kind = "toy"\n{key} = {text}\n')
    good.write_text('kind = "toy"\n')
    ways = [lambda: Toy(**{key: value}), lambda: read(file), lambda: read(good, [f"{key}={text}"])]
    messages = set()
    for way in ways:
        with pytest.raises(SpecError) as caught:
            way()
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert messages.pop().startswith(message)


def test_all_faults_are_reported_at_once():
    with pytest.raises(SpecError) as caught:
        Toy(n=0, dt=-1, lwa="softmax")
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == ["lwa", "n", "dt"]


def test_numpy_and_jax_values_become_plain_ones():
    spec = Toy(n=np.int64(3), beta=jnp.float32(0.5), sizes=np.arange(1, 3), marks=jnp.array([0.5]))
    assert spec == Toy(n=3, beta=0.5, sizes=[1, 2], marks=[0.5])
    assert all(type(v) in (int, float, str, bool, tuple) for v in dataclasses.asdict(spec).values())


def test_one_value_is_a_list_of_one(tmp_path):
    (tmp_path / "toy.toml").write_text('kind = "toy"\n')
    assert read(tmp_path / "toy.toml", ["sizes=10", "law=unnormalised"]) == Toy(sizes=[10], law="unnormalised")


def test_specs_are_frozen_and_can_be_replaced_with_checks():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Toy().n = 3  # pyright: ignore
    with pytest.raises(SpecError, match="n: got 0"):
        dataclasses.replace(Toy(), n=0)


@settings(max_examples=50, deadline=None)
@given(
    title=st.text(),
    seed=st.integers(0, 2**63 - 1),
    beta=st.floats(0, allow_infinity=False, allow_nan=False),
    dt=st.floats(0, exclude_min=True, allow_infinity=False, allow_nan=False),
    sizes=st.lists(st.integers(1), min_size=1, unique=True),
    marks=st.lists(st.floats(allow_infinity=False, allow_nan=False), unique=True),
    exact=st.booleans(),
)
def test_toml_round_trip_is_exact(**values):
    spec = Toy(**values)
    assert from_dict(tomllib.loads(spec.as_toml())) == spec


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n = 3", "kind: got None; allowed: one of 'moving_heads'"),
        ('kind = "moving_head"', "kind: got 'moving_head'"),
        ('kind = "toy"\nn = ', "broken.toml: "),
    ],
)
def test_broken_files(text, words, tmp_path):
    (tmp_path / "broken.toml").write_text(text)
    with pytest.raises(SpecError, match=words):
        read(tmp_path / "broken.toml")


@pytest.mark.parametrize("change", ["n", "=3", ""])
def test_a_change_without_key_or_value(change, tmp_path):
    (tmp_path / "toy.toml").write_text('kind = "toy"')
    with pytest.raises(SpecError, match=r"--set: got .*; allowed: key=value"):
        read(tmp_path / "toy.toml", [change])


def test_an_unknown_config_names_the_nearest():
    with pytest.raises(SpecError, match="did you mean 'ou_heads_s2'"):
        read("ou_head_s2")


@pytest.mark.parametrize("path", shipped_configs(), ids=lambda path: path.stem)
def test_shipped_configs_are_valid_and_say_what_they_show(path):
    spec = from_dict(read_toml(path))
    assert spec.title and spec.source.startswith("arXiv:") and spec.claim
    text = path.read_text()
    assert text.startswith("#") and spec.source in text and "Expected time" in text


@pytest.mark.parametrize("path", shipped_configs(), ids=lambda path: path.stem)
def test_what_a_reader_sees_of_a_config_is_not_half_in_ascii(path):
    values = read_toml(path)
    shown = f"{values['title']} {values['claim']}"
    assert not re.search(r"<=|>=|W_2|\bG\^2|\b(eps|beta|tau|pi|sqrt)\b|[\^{(=] ?-\d|\d e-\d", shown)


def test_the_growth_rates_of_both_spheres_have_one_source():
    sources = {read(f"mean_field_s{k}").source for k in (1, 2)}
    assert sources == {"arXiv:2410.23228"}


ABSURD = [
    ("stability_s2", "sizes=[1e-300]", "sizes: got [1e-300]; allowed: at least 2.2e-13 each"),
    ("stability_s2", "step=1e-300", "step: got 1e-300; allowed: at least 4e-08, which makes 1e+08 steps"),
    ("stability_s2", "sizes=[]", "sizes: got []; allowed: a non-empty list"),
    ("ou_heads_s2", "dt=1e-300", "dt: got 1e-300; allowed: at least 2e-07"),
    ("weighted_metric", "norms=[0.0, 1000]", "norms: got [0.0, 1000.0]; allowed: less than 699 in size"),
    ("weighted_metric", "norm_of_slices=1e300", "norm_of_slices: got 1e+300; allowed: less than 699"),
    ("equiangular", "beta=[1000]", "beta: got [1000.0]; allowed: less than 699 in size"),
    ("clustering_diagram", "beta=[1000]", "beta: got [1000.0]; allowed: less than 699 in size"),
    ("mean_field_s1", "beta=[1000]", "beta: got [1000.0]; allowed: less than 699 in size"),
    ("mean_field_s2", "flow_beta=1000", "flow_beta: got 1000.0; allowed: less than 699 in size"),
    ("mean_field_s1", "strength=-1000", "strength: got -1000.0; allowed: less than 538 in size"),
]


@pytest.mark.parametrize(("config", "change", "words"), ABSURD)
def test_sizes_beyond_the_floats_are_refused_before_any_work(config, change, words):
    with pytest.raises(SpecError) as caught:
        read(config, [change])
    assert str(caught.value).startswith(words)


def test_single_precision_has_nearer_limits():
    read("equiangular", ["beta=[100]"])
    with pytest.raises(SpecError, match=r"less than 78 in size, beyond which exponentials overflow float32"):
        read("equiangular", ["beta=[100]", "dtype=float32"])


def test_there_are_shipped_configs():
    names = {path.stem for path in shipped_configs()}
    assert {"ou_heads_s2", "ou_sweep_s2", "oscillating_locked_s2", "oscillating_spread_s2", "equiangular"} <= names


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dt": 0.3}, "dt: got 0.3; allowed: a number of which T=20.0 is a whole multiple"),
        ({"record_every": 7}, "record_every: got 7; allowed: a divisor of the 4000 steps"),
        ({"chunks": 3}, "chunks: got 3; allowed: a divisor of the 800 recorded times"),
        ({"settle": 20}, "settle: got 20.0; allowed: less than T=20"),
        ({"snapshots": [0, 21]}, "snapshots: "),
        ({"snapshots": [0.001]}, "snapshots: "),
        ({"start": "pentagon"}, "start: got 'pentagon'"),
        ({"weights": "oscillating", "paths": 1, "d": 5}, "d: got 5; allowed: one of 2, 3 for oscillating weights"),
        ({"weights": "oscillating"}, "paths: got 10; allowed: 1 for oscillating weights"),
    ],
)
def test_values_that_contradict_each_other(values, words):
    with pytest.raises(SpecError) as caught:
        MovingHeads(**values)
    assert words in str(caught.value)


def test_whole_numbers_of_steps_despite_rounding():
    assert steps_in(20.0, 0.005) == 4000
    assert steps_in(0.3, 0.1) == 3
    assert steps_in(0.25, 0.1) is None
    assert steps_in(0.01, 0.1) is None
