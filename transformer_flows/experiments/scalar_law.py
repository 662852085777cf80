"""Scalar laws solved on the host: the predictions that experiments are compared with."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

Law = Callable[[float], float]


def follow(rate: Law, start: float, ts: np.ndarray) -> np.ndarray:
    """ρ at the times `ts`, for ρ' = rate(ρ) and ρ(ts[0]) = start; NaN from where the solver gives up."""
    rtol, atol = _tolerances()
    found = solve_ivp(lambda t, y: [rate(y[0])], (ts[0], ts[-1]), [start], "DOP853", ts, rtol=rtol, atol=atol).y
    rho = np.full(len(ts), np.nan)
    rho[: found.shape[-1]] = found[0] if len(found) else np.nan
    return rho


def hitting_time(rate: Law, start: float, level: float) -> float:
    """Time at which ρ, growing from `start` at ρ' = rate(ρ) > 0, reaches `level`.

    Clock and position change places: dt/dρ = 1/rate, so no event has to be found.
    """
    if start >= level:
        return 0.0
    rtol, atol = _tolerances()
    solution = solve_ivp(lambda rho, t: [1 / rate(rho)], (start, level), [0.0], "DOP853", rtol=rtol, atol=atol)
    return float(solution.y[0, -1])


def bracket(rho: np.ndarray, level: float) -> int | None:
    """The sample after which a sampled curve first reaches `level`; None if it starts there or does not get there."""
    above = np.flatnonzero(rho >= level)
    return int(above[0]) - 1 if above.size and above[0] else None


def interpolated_hitting_time(ts: np.ndarray, rho: np.ndarray, level: float) -> float:
    """Time at which a finely sampled curve first reaches `level`; NaN if it does not.

    log(1 − ρ) is interpolated: near the end it is almost a straight line, because gaps close exponentially.
    """
    if rho[0] >= level:
        return float(ts[0])
    k = bracket(rho, level)
    if k is None:
        return np.nan
    gaps = np.log(np.maximum(1 - rho[k : k + 2].astype(float), np.finfo(rho.dtype).eps))
    share = (np.log1p(-level) - gaps[0]) / (gaps[1] - gaps[0])
    return float(ts[k] + share * (ts[k + 1] - ts[k]))


def _tolerances() -> tuple[float, float]:
    """As tight as the rates, which JAX evaluates, have digits: tighter ones would make the steps vanish."""
    eps = float(jnp.finfo(jnp.result_type(float)).eps)
    return max(1e-12, 50 * eps), max(1e-13, 5 * eps)
