"""Scalar laws solved on the host: the predictions that experiments are compared with."""

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

Law = Callable[[float], float]

RTOL, ATOL = 1e-12, 1e-13


def follow(rate: Law, start: float, ts: np.ndarray) -> np.ndarray:
    """ρ at the times `ts`, for ρ' = rate(ρ) and ρ(ts[0]) = start."""
    solution = solve_ivp(lambda t, y: [rate(y[0])], (ts[0], ts[-1]), [start], "DOP853", ts, rtol=RTOL, atol=ATOL)
    return solution.y[0]


def hitting_time(rate: Law, start: float, level: float) -> float:
    """Time at which ρ, growing from `start` at ρ' = rate(ρ) > 0, reaches `level`.

    Clock and position change places: dt/dρ = 1/rate, so no event has to be found.
    """
    if start >= level:
        return 0.0
    solution = solve_ivp(lambda rho, t: [1 / rate(rho)], (start, level), [0.0], "DOP853", rtol=RTOL, atol=ATOL)
    return float(solution.y[0, -1])


def measured_hitting_time(ts: np.ndarray, rho: np.ndarray, level: float) -> float:
    """Time at which a sampled curve first reaches `level`; NaN if it does not.

    Between samples log(1 − ρ) is interpolated: near the end it is a straight line, because gaps close exponentially.
    """
    above = np.flatnonzero(rho >= level)
    if not above.size:
        return np.nan
    k = int(above[0])
    if k == 0:
        return float(ts[0])
    gaps = np.log1p(-np.minimum(rho[k - 1 : k + 1], 1 - 1e-16))
    share = (np.log1p(-level) - gaps[0]) / (gaps[1] - gaps[0])
    return float(ts[k - 1] + share * (ts[k] - ts[k - 1]))
