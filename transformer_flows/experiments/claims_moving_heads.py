"""Claims about tokens under moving heads (arXiv:2605.18870), and about their energy balance."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from .claims import Measurement, claim, shared
from .moving_heads import MovingHeads
from .runner import compute

if TYPE_CHECKING:
    import xarray

SOURCE = "arXiv:2605.18870"
QUICK = {"n": 40, "dt": 0.02, "record_every": 10}
SLOPE = {"quantities": ["slope"]}
TERMS = ("residual", "remainder")
OSCILLATION = {"weights": "oscillating", "paths": 1, "heads": [10]} | SLOPE


@claim(SOURCE, "OU heads: the mean of G^2 over t >= 2.5 falls like H^b over H = 1, 10, 100 (exponent b)")
def power_law(quick: bool) -> Measurement:
    sizes = QUICK | {"n": 20, "paths": 4} if quick else {}
    data = compute(MovingHeads(heads=[1, 10, 100], **SLOPE, **sizes))
    b, low, high = (float(data.attrs[f"power_exponent{end}"]) for end in ("", "_low", "_high"))
    return Measurement(-0.95, b, -1.1, -0.8, (high - low) / 2)


@claim(SOURCE, "phase-locked oscillation, 10 heads: the mean of G^2 over t >= 2.5 stays as large as for one head")
def phase_locked_mean(quick: bool) -> Measurement:
    data = _phase_locked(quick)
    return Measurement(0.37, data["mean_slope"].item(), 0.33, 0.43)


@claim(SOURCE, "phase-locked oscillation, 10 heads: the tokens do not settle (mean of G^2 over the last period)")
def phase_locked_does_not_settle(quick: bool) -> Measurement:
    data = _phase_locked(quick)
    last = data["slope"].where(data["t"] > 20 - 2 * np.pi, drop=True)
    return Measurement(0.37, float(last.mean()), 0.1, np.inf)


@claim(SOURCE, "phase-spread oscillation, 10 heads: the tokens settle, G^2(20) < 1e-4")
def phase_spread_settles(quick: bool) -> Measurement:
    return Measurement(3e-5, _phase_spread(quick)["slope"][0, 0, -1].item(), 0.0, 1e-4)


@claim(
    SOURCE,
    "sustained oscillation keeps the tokens from settling, with spread phases too (10 heads, G^2(20))",
    contradicted="G^2(20) is near 3e-5 with spread phases; the statement holds where the heads swing in phase",
)
def oscillation_prevents_settling(quick: bool) -> Measurement:
    # as far from rest as phase-locked heads keep the tokens
    return Measurement(0.37, _phase_spread(quick)["slope"][0, 0, -1].item(), 0.1, np.inf)


@claim("Itô's formula", "energy balance under OU heads, closed on every path: order of the residual in dt")
def balance_order_pathwise(quick: bool) -> Measurement:
    steps, residual, remainder = _residuals(quick)
    order, error = _order(steps, residual - remainder)
    return Measurement(1.0, order, 0.85, 1.15, error)


@claim("Itô's formula", "energy balance under OU heads with the expected Itô term: order of the residual's rms in dt")
def balance_order_rms(quick: bool) -> Measurement:
    steps, residual, _ = _residuals(quick)
    order, error = _order(steps, residual)
    return Measurement(0.5, order, 0.3, 0.7, error)


@shared
def _phase_locked(quick: bool) -> "xarray.Dataset":
    return compute(MovingHeads(**OSCILLATION, phases="locked", **(QUICK if quick else {})))


@shared
def _phase_spread(quick: bool) -> "xarray.Dataset":
    return compute(MovingHeads(**OSCILLATION, phases="spread", **(QUICK if quick else {})))


@shared
def _residuals(quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps; residual and remainder at T = 2 by (step, path). The noise path is the same at every step."""
    steps = np.array([0.02, 0.00125] if quick else [0.02, 0.01, 0.005, 0.0025, 0.00125])
    # One head: the noise averages out over heads, the error of the steps does not.
    spec = MovingHeads(heads=[1], n=12, T=2.0, settle=1.0, snapshots=[], record_every=1)
    spec = dataclasses.replace(spec, paths=24 if quick else 200, quantities=["balance"])
    runs = [compute(dataclasses.replace(spec, dt=dt, record_every=round(steps[0] / dt))) for dt in steps]
    residual, remainder = (np.array([run[f"balance_{name}"][0, :, -1] for run in runs]) for name in TERMS)
    return steps, residual, remainder


def _order(steps: np.ndarray, residuals: np.ndarray) -> tuple[float, float]:
    """Slope of log rms against log dt, with the half-width of a 95 % bootstrap interval over paths."""

    def slope(paths: np.ndarray) -> float:
        rms = np.sqrt((residuals[:, paths] ** 2).mean(axis=1))
        return float(np.polyfit(np.log(steps), np.log(rms), 1)[0])

    count = residuals.shape[1]
    draws = np.random.default_rng(0).integers(count, size=(1000, count))
    low, high = np.quantile([slope(paths) for paths in draws], [0.025, 0.975])
    return slope(np.arange(count)), float(high - low) / 2
