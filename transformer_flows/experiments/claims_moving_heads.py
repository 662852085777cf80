"""Claims about tokens under moving heads (arXiv:2605.18870), and about their energy balance."""

import dataclasses
import functools

import numpy as np

from .claims import Measurement, claim
from .moving_heads import MovingHeads
from .runner import compute

SOURCE = "arXiv:2605.18870"
OSCILLATION = {"weights": "oscillating", "paths": 1, "heads": [10]}


@claim(SOURCE, "OU heads: the mean of G^2 over t >= 2.5 falls like H^b over H = 1, 10, 100 (exponent b)")
def power_law(quick: bool) -> Measurement:
    sizes = {"n": 50, "dt": 0.02, "record_every": 5, "paths": 4} if quick else {}
    data = compute(MovingHeads(heads=[1, 10, 100], **sizes))
    b, low, high = (float(data.attrs[f"power_exponent{end}"]) for end in ("", "_low", "_high"))
    return Measurement(-0.95, b, -1.1, -0.8, (high - low) / 2)


@claim(SOURCE, "phase-locked oscillation, 10 heads: the mean of G^2 over t >= 2.5 stays as large as for one head")
def phase_locked_mean(quick: bool) -> Measurement:
    data = _phase_locked()
    return Measurement(0.37, data["mean_slope"].item(), 0.33, 0.43)


@claim(SOURCE, "phase-locked oscillation, 10 heads: the tokens do not settle (largest G^2 of the last period)")
def phase_locked_does_not_settle(quick: bool) -> Measurement:
    data = _phase_locked()
    last = data["slope"].where(data["t"] > 20 - 2 * np.pi, drop=True)
    return Measurement(1.0, float(last.max()), 0.1, np.inf)


@claim(SOURCE, "phase-spread oscillation, 10 heads: the tokens settle, G^2(20) < 1e-4")
def phase_spread_settles(quick: bool) -> Measurement:
    data = compute(MovingHeads(**OSCILLATION, phases="spread"))
    return Measurement(3e-5, data["slope"][0, 0, -1].item(), 0.0, 1e-4)


@claim("Itô's formula", "energy balance under OU heads, closed on every path: order of the residual in dt")
def balance_order_pathwise(quick: bool) -> Measurement:
    order, error = _order(_residuals(quick)["pathwise"])
    return Measurement(1.0, order, 0.85, 1.15, error)


@claim("Itô's formula", "energy balance under OU heads with the expected Itô term: order of the residual's rms in dt")
def balance_order_rms(quick: bool) -> Measurement:
    order, error = _order(_residuals(quick)["plain"])
    return Measurement(0.5, order, 0.35, 0.65, error)


@functools.cache
def _phase_locked():
    return compute(MovingHeads(**OSCILLATION, phases="locked"))


STEPS = np.array([0.04, 0.02, 0.01, 0.005])


@functools.cache
def _residuals(quick: bool) -> dict[str, np.ndarray]:
    """Residuals at T = 2 by (step, path); the same noise path at every step."""
    spec = MovingHeads(heads=[3], n=20, T=2.0, settle=1.0, snapshots=[], paths=24 if quick else 200, record_every=1)
    runs = [compute(dataclasses.replace(spec, dt=float(dt), record_every=round(0.04 / dt))) for dt in STEPS]
    plain = np.array([run["balance_residual"][0, :, -1] for run in runs])
    remainder = np.array([run["balance_remainder"][0, :, -1] for run in runs])
    return {"plain": plain, "pathwise": plain - remainder}


def _order(residuals: np.ndarray) -> tuple[float, float]:
    """Slope of log rms against log dt, with the half-width of a 95 % bootstrap interval over paths."""

    def slope(paths: np.ndarray) -> float:
        rms = np.sqrt((residuals[:, paths] ** 2).mean(axis=1))
        return float(np.polyfit(np.log(STEPS), np.log(rms), 1)[0])

    count = residuals.shape[1]
    draws = np.random.default_rng(0).integers(count, size=(1000, count))
    low, high = np.quantile([slope(paths) for paths in draws], [0.025, 0.975])
    return slope(np.arange(count)), float(high - low) / 2
