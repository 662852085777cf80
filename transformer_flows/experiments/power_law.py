"""A power law through measured means, with an interval from the paths."""

from typing import NamedTuple

import numpy as np

RESAMPLES = 2000


class PowerLaw(NamedTuple):
    """a·H^b with the central 95 % interval of b; NaN where the data do not determine it."""

    prefactor: float
    exponent: float
    low: float
    high: float


def fit_power_law(heads: np.ndarray, means: np.ndarray, seed: int, *, paired: bool = False) -> PowerLaw:
    """Fit a·H^b to the mean over paths of `means` (heads, path), by least squares on logarithms.

    The interval is a bootstrap: paths are drawn with replacement and fitted again, for each H on its own, or the same
    ones for all where they are `paired` (path k starts alike for every H).
    """
    if len(heads) < 2 or not (np.isfinite(means).all() and (means > 0).all()):
        return PowerLaw(*[np.nan] * 4)
    exponent, intercept = _line(heads, means.mean(axis=1))
    rng = np.random.default_rng(seed)
    paths = means.shape[1]
    draws = rng.integers(paths, size=(RESAMPLES, 1 if paired else len(heads), paths))
    resampled = np.take_along_axis(means[None], draws, axis=2).mean(axis=2)
    slopes = _line(heads, resampled.T)[0]
    low, high = np.quantile(slopes, [0.025, 0.975]) if paths > 1 else (np.nan, np.nan)
    return PowerLaw(float(np.exp(intercept)), float(exponent), float(low), float(high))


def _line(heads: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Slope and intercept of log mean against log H; `means` (heads,) or (heads, resample)."""
    return np.polyfit(np.log(heads), np.log(means), 1)
