"""What an experiment is made of: a frozen dataclass of plain values, checked in one place.

A TOML file, `--set key=value` and Python keyword arguments all end in `Spec.__init__`, so a wrong value gives the
same `SpecError` from each of them. Nothing here imports JAX: a wrong value is refused before a device is touched.
"""

import dataclasses
import difflib
import functools
import json
import math
import numbers
import reprlib
import tomllib
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from .unit import Arrays, Unit

if typing.TYPE_CHECKING:
    import xarray


class SpecError(ValueError):
    """A value that no experiment can be run with. The message holds the key, what it got, and what is allowed."""


class Rule(NamedTuple):
    """What a value must satisfy, and the words for it."""

    words: str
    holds: Callable[[Any], bool]


MOST_STEPS = 10**8  # that a solve takes

positive = Rule("greater than 0", lambda value: value > 0)


def at_least(low: int | float) -> Rule:
    """The value is `low` or more."""
    return Rule(f"at least {low:g}", lambda value: value >= low)


def less_than(high: int | float) -> Rule:
    """The value is below `high`."""
    return Rule(f"less than {high:g}", lambda value: value < high)


def one_of(*names: str) -> Rule:
    """The value is one of `names`."""
    return Rule("one of " + ", ".join(map(repr, names)), lambda value: value in names)


def option(default: Any, *rules: Rule, empty: bool = False) -> Any:
    """A field with a default and rules; the rules of a list hold for each entry. `empty` allows the empty list."""
    return dataclasses.field(default=default, metadata={"rules": rules, "empty": empty})


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class Spec:
    """Base of the experiments: the fields that all of them have, and the one way in.

    A concrete experiment is a frozen dataclass that adds its fields and says which units of work it is made of and
    how their results become a dataset.
    """

    kind: ClassVar[str]

    title: str = option("")
    source: str = option("")  # the paper, as in "arXiv:2605.18870"
    claim: str = option("")  # what the run shows, in one line
    expected_seconds: float = option(60.0, positive)  # on two cores, to set expectations in `list`
    seed: int = option(0, at_least(0), less_than(2**63))
    dtype: str = option("float64", one_of("float64", "float32"))

    def __init__(self, **given: object):
        fields = {field.name: field for field in dataclasses.fields(self)}
        types = _types(type(self))
        faults = [f"{key}: unknown key; {known_names(key, [*fields])}" for key in given if key not in fields]
        for name, field in fields.items():
            try:
                value = _checked(given.get(name, field.default), types[name], field.metadata)
                object.__setattr__(self, name, value)
            except SpecError as fault:
                faults.append(f"{name}: {fault}")
        faults = faults or list(self.conflicts())
        if faults:
            raise SpecError("\n".join(faults))

    def conflicts(self) -> Iterator[str]:
        """Messages about values that are allowed alone but not together."""
        yield from ()

    def units(self) -> list[Unit]:
        """The units of work, in the order in which they are computed. Fixed by the values above."""
        raise NotImplementedError

    def dataset(self, results: Mapping[str, Arrays]) -> "xarray.Dataset":
        """The named arrays of the record, from the results of all units."""
        raise NotImplementedError

    @property
    def about(self) -> dict[str, Any]:
        """Attributes of the dataset: what the experiment is, and where it comes from."""
        return {"title": self.title, "kind": self.kind, "source": self.source}

    def as_dict(self) -> dict[str, Any]:
        """Plain values with the kind first; `from_dict` of the catalogue is its inverse."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"kind": self.kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def as_toml(self) -> str:
        """The text of a config file that gives this very spec."""
        return "".join(f"{key} = {_emit(value)}\n" for key, value in self.as_dict().items())


def read_toml(path: Path) -> dict[str, Any]:
    """The values in a TOML file; `SpecError` if there is no such file or it is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{path}: {error}") from error


def got(value: object, allowed: str) -> str:
    """The words of every message: what was got and what is allowed."""
    return f"got {reprlib.repr(value)}; allowed: {allowed}"


def known_names(name: str, known: list[str]) -> str:
    """The words after a name that does not exist: the nearest one that does, and all of them."""
    close = difflib.get_close_matches(name, known, n=1)
    return (f"did you mean {close[0]!r}? " if close else "") + "Known: " + ", ".join(known)


def steps_in(length: float, step: float) -> int | None:
    """How many steps make up the length; None if it is not a whole number of them."""
    count = round(length / step)
    return count if count >= 1 and math.isclose(count * step, length, rel_tol=1e-9) else None


def step_conflict(name: str, step: float, T: float, records: int) -> Iterator[str]:
    """A message if the times between `records` equally spaced records on [0, T] are no multiples of the step."""
    between = T / (records - 1)
    if T / step > MOST_STEPS:
        yield f"{name}: {got(step, f'at least {T / MOST_STEPS:g}, which makes {MOST_STEPS:g} steps')}"
    elif steps_in(between, step) is None:
        yield f"{name}: {got(step, f'a whole part of the {between:g} between two records')}"


@functools.cache
def _types(kind: type[Spec]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _checked(value: Any, kind: Any, metadata: Mapping[str, Any]) -> Any:
    """The value as the field's type, or a `SpecError` without the key."""
    rules, empty = metadata["rules"], metadata["empty"]
    if typing.get_origin(kind) is not tuple:
        return _entry(value, kind, rules, _words(kind, rules), shown=value)
    entry_kind = typing.get_args(kind)[0]
    allowed = f"a {'' if empty else 'non-empty '}list of distinct entries, each {_words(entry_kind, rules)}"
    entries = _plain(value)
    entries = entries if isinstance(entries, list | tuple) else [entries]
    if not entries and not empty:
        raise SpecError(got([], allowed))
    checked = tuple(_entry(entry, entry_kind, rules, allowed, shown=value) for entry in entries)
    if len(set(checked)) < len(checked):
        raise SpecError(got(entries, allowed))
    return checked


def _entry(value: Any, kind: type, rules: tuple[Rule, ...], allowed: str, shown: Any) -> Any:
    converted = _convert(_plain(value), kind)
    if converted is None or not all(rule.holds(converted) for rule in rules):
        raise SpecError(got(_plain(shown), allowed))
    return converted


def _plain(value: Any) -> Any:
    """NumPy and JAX scalars and arrays as Python values."""
    return value.tolist() if hasattr(value, "tolist") else value


def _convert(value: Any, kind: type) -> Any:
    """The value as `kind` if it is one without loss, else None. A bool is not a number; no float is infinite."""
    if kind is bool or kind is str or isinstance(value, bool):
        return value if type(value) is kind else None
    if kind is int:
        return int(value) if isinstance(value, numbers.Integral) else None
    try:
        number = float(value) if isinstance(value, numbers.Real) else math.nan
    except OverflowError:  # an integer beyond the largest float
        return None
    return number if math.isfinite(number) else None


def _words(kind: type, rules: tuple[Rule, ...]) -> str:
    noun = {int: "an integer", float: "a finite number", str: "a string", bool: "true or false"}[kind]
    words = " and ".join(rule.words for rule in rules)
    return words if words.startswith("one of") else f"{noun} {words}".strip()


def _emit(value: Any) -> str:
    """A TOML value. JSON's strings are TOML's, but for the one control character that JSON leaves bare."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_emit, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
