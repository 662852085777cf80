"""A tiny experiment for tests of the machinery: a chain of units in which each one adds to the one before."""

import dataclasses
import os
import time
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import xarray

from transformer_flows.experiments.spec import Spec, at_least, got, one_of, option, positive
from transformer_flows.experiments.unit import Unit

computed: list[str] = []


def nothing(k: int) -> None:
    """What happens inside unit k, besides its arithmetic."""


inside = nothing


@dataclasses.dataclass(frozen=True, init=False, kw_only=True)
class Toy(Spec):
    kind: ClassVar[str] = "toy"

    n: int = option(4, at_least(1))
    beta: float = option(1.0, at_least(0))
    dt: float = option(0.1, positive)
    sizes: tuple[int, ...] = option((1, 2), at_least(1))
    marks: tuple[float, ...] = option((), empty=True)
    law: str = option("softmax", one_of("softmax", "unnormalised"))
    exact: bool = option(True)

    def conflicts(self) -> Iterator[str]:
        if self.n == 13:
            yield f"n: {got(self.n, 'another number')}"

    def units(self) -> list[Unit]:
        return [Unit(f"unit{k}", lambda earlier, k=k: self._unit(earlier, k)) for k in range(self.n)]

    def _unit(self, earlier, k: int):
        inside(k)
        computed.append(f"unit{k}")
        before = earlier[f"unit{k - 1}"]["x"] if k else np.zeros(3)
        return {"x": before + np.random.default_rng([self.seed, k]).normal(size=3) / 3}

    def dataset(self, results) -> xarray.Dataset:
        values = np.array([results[f"unit{k}"]["x"] for k in range(self.n)])
        return xarray.Dataset({"x": (("k", "i"), values, {"units": "dimensionless"})}, attrs={"title": self.title})


def signal_in_unit(number: int, signals: list[int]) -> None:
    """From now on this unit sends its process these signals, and would then go on for a minute."""
    global inside

    def inside(k: int) -> None:
        for sent in signals if k == number else []:
            os.kill(os.getpid(), sent)
            time.sleep(0.2)  # two at once would be one
        if k == number:
            time.sleep(60)
