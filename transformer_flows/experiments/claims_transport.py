"""Claims about the weighted distance and its minimising movements (arXiv:2605.18870)."""

from typing import TYPE_CHECKING

import numpy as np

from .claims import Measurement, claim, shared
from .minimising_movements import MinimisingMovements
from .runner import compute
from .weighted_metric import WeightedMetric, circle, distances

if TYPE_CHECKING:
    import xarray

SOURCE = "arXiv:2605.18870"
QUICK_STEPS = {"n": 12, "weights": ["fixed"], "counts": [16, 64], "draws": 2}


@claim(SOURCE, "proximal steps in W_m converge to the gradient flow by a power of the step (exponent)")
def order_of_minimising_movements(quick: bool) -> Measurement:
    data = _movements(quick)
    power, low, high = (data[f"scaling_power{end}"].to_numpy() for end in ("", "_low", "_high"))
    worst = np.abs(power - 1).argmax()
    return Measurement(1.0, float(power[worst]), 0.9, 1.1, float(high[worst] - low[worst]) / 2)


@claim(SOURCE, "proximal steps under fixed heads never raise the energy, up to tau = 10 (largest rise, relative)")
def energy_never_rises(quick: bool) -> Measurement:
    data = _movements(quick)
    rise = (data["step_rise"] / data["step_energy"][:, 0]).max()
    return Measurement(0.0, float(rise), -np.inf, 1e-14)


@claim(SOURCE, "e^{-L/2} W_2 <= W_m <= e^{L/2} W_2 (largest of lower/W_m and W_m/upper)")
def distance_lies_between_its_bounds(quick: bool) -> Measurement:
    spec = WeightedMetric(n=12, norms=[1.0, 4.0], slices=[8], draws=2) if quick else WeightedMetric()
    found = [distances(spec, draw) for draw in range(spec.draws)]
    sides = [np.maximum(at["lower"] / at["value"], at["value"] / at["upper"]) for at in found]
    # without heads all three are equal, to rounding
    return Measurement(1.0, float(np.max(sides)), 0.0, 1.0 + 1e-12)


@claim(SOURCE, "W_m of one token on the circle is its line integral (error with 32 slices)")
def distance_on_the_circle(quick: bool) -> Measurement:
    error = circle(WeightedMetric(slices=[32]), 0)["error"]
    return Measurement(0.0, float(error[0]), 0.0, 1e-3)


@shared
def _movements(quick: bool) -> "xarray.Dataset":
    return compute(MinimisingMovements(**QUICK_STEPS if quick else {}))
