"""Claims about stability, limits of the weights, and long time (arXiv:2605.18870)."""

from typing import TYPE_CHECKING

import numpy as np

from .claims import Measurement, claim, shared
from .omega_limit import OmegaLimit
from .runner import compute
from .stability import Stability
from .weight_limit import POWERS, WeightLimit

if TYPE_CHECKING:
    import xarray

SOURCE = "arXiv:2605.18870"
QUICK_LIMIT = {"n": 16, "heads": 64, "many": 64, "levels": [1e-4, 1e-3], "kept": [4, 64], "records": 6}


@claim(SOURCE, "two clouds under the same weights part no faster than exp(C t): largest share of the exponent used")
def growth_is_bounded(quick: bool) -> Measurement:
    data = _stability(quick)
    share = (data["growth_rate"] / data["growth_rate_bound"]).max()  # at t = 0 both sides are equal
    return Measurement(1.0, float(share), -np.inf, 1.0)


@claim(SOURCE, "permuted tokens follow the permuted solution (largest distance)")
def permutation_of_tokens(quick: bool) -> Measurement:
    return Measurement(0.0, float(_stability(quick)["permutation_gap"].max()), 0.0, 1e-9)


@claim(SOURCE, "noise of size eps on the initial weights moves the clouds by a power of eps (W_2, exponent)")
def power_of_initial_noise(quick: bool) -> Measurement:
    return _power(quick, "initial_noise", 0.1)


@claim(SOURCE, "weight decay eps moves the clouds by a power of eps (W_2, exponent)")
def power_of_weight_decay(quick: bool) -> Measurement:
    return _power(quick, "weight_decay", 0.1)


@claim(SOURCE, "K of many heads give the flow of all of them up to a power of K (W_2, exponent)")
def power_of_subsampling(quick: bool) -> Measurement:
    return _power(quick, "subsampling", 0.2)


@claim(SOURCE, "weights that come to rest: the last tokens are stationary for the energy of the limit (its slope^2)")
def limit_is_stationary(quick: bool) -> Measurement:
    return Measurement(0.0, _long_time("ou_calming", quick)["limit_slope"].item(), 0.0, 3e-5)


@claim(SOURCE, "weights that come to rest: G^2 falls below 1e-4 for good (time from which)")
def calming_weights_settle(quick: bool) -> Measurement:
    return Measurement(10.0, _long_time("ou_calming", quick)["settling_time"].item(), 0.0, 25.0)


@claim(SOURCE, "phase-locked oscillation, 10 heads: G^2 does not stay below 1e-4 over any period (share of windows)")
def phase_locked_never_settles(quick: bool) -> Measurement:
    settled = np.isfinite(_long_time("oscillating_locked", quick)["settling_time"].item())
    return Measurement(0.0, float(settled), 0.0, 0.0)


@shared
def _stability(quick: bool) -> "xarray.Dataset":
    sizes = (
        {"n": 16, "T": 1.0, "records": 11, "signs": ["attracting"], "weights": ["oscillating_spread"]} if quick else {}
    )
    return compute(Stability(**sizes))


@shared
def _limits(quick: bool) -> "xarray.Dataset":
    return compute(WeightLimit(**QUICK_LIMIT if quick else {}))


def _power(quick: bool, perturbation: str, within: float) -> Measurement:
    data = _limits(quick)
    i = [*POWERS].index(perturbation)  # the first of the quantities is W_2
    power, low, high = (float(data[f"scaling_power{end}"][i]) for end in ("", "_low", "_high"))
    expected = POWERS[perturbation]
    error = (high - low) / 2 if np.isfinite(low + high) else 0.0
    return Measurement(expected, power, expected - within, expected + within, error)


@shared
def _long_time(case: str, quick: bool) -> "xarray.Dataset":
    sizes = {"n": 16, "T": 30.0, "records": 151, "step": 0.1} if quick else {}
    return compute(OmegaLimit(cases=[case], **sizes)).isel(case=0)
