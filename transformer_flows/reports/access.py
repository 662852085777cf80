"""How a report reads a Dataset: the variables it knows, and the few ways in which they are looked up.

Moving heads, dimensions in this order:

    tokens                                     (heads, frame_t, token, axis)   of path 0; attribute `snapshots`: times
    slope, dissipation_rate, energy            (heads, path, t)                G², S, E
    clusters, order_parameter, diameter        (heads, path, t)
    balance_energy_change, …_weight_drift, …_ito, …_martingale, …_dissipation, …_remainder, …_residual
                                               (heads, path, t)                accumulated from t = 0
    mean_slope                                 (heads, path)                   mean of G² after settling
    attributes power_prefactor, power_exponent, power_exponent_low, power_exponent_high

Equiangular tokens: `cosine`, `cosine_predicted` (law, beta, t); `hitting_time`, `hitting_time_predicted` (law, beta).
Clustering diagram: `clustered` (d, beta, t); `clustering_time_predicted` (d, beta).
Convergence: `scaling_error` (series, level, draw); the levels are the coordinate `level`, or the variable
`scaling_level` (series, level), with the attribute `long_name`, or names of their own `scaling_level_name` (series);
`scaling_power`, `scaling_power_low`, `scaling_power_high`, `scaling_prefactor`, `scaling_power_expected` (series).

Two flows: `flow_slope`, `flow_dissipation`, `flow_energy_slope`, `flow_action`, `flow_energy`, `flow_balance_residual`,
`flow_identity_residual` (flow, heads, t).
Stability: `growth`, `growth_rate` (case, perturbation, t); `growth_bound`, `growth_rate_bound` (case, t);
`permutation_gap` (case).
Long time: `settling_slope`, `settling_energy_slope` (case, t); `settling_time`, `limit_slope`, `weight_variation`,
`weight_variation_tail`, `weights_integrable` (case).
Mean field: `rate`, `rate_predicted` (case, mode); `density` (t, node), relative to the uniform measure, at `node_x`
(node, axis); `density_mass`, `density_least`, `density_tail` (t). On one path of common noise: `noisy_density`
(t, angle), `noisy_tokens` (t, bin), relative to the uniform measure; attribute `n` of the latter: how many tokens.
Deep networks: `gap`, `cosine` (case, draw, t); `cosine_share` (case, record, bin); `kernel`, `kernel_slope`,
`lyapunov`, `pair_rate`, `gap_rate_bound`, `gap_rate`, `step_size` (case), with `activation`, `d`, `bias`, `attention`
along `case`; `order`, `nematic_order` (activation, draw, t) and `end` (activation, token, axis).
Limits of networks: `limits` (depth, width).
Common noise: `exponent` (draw_long, index); `token_correlation`, `pair_cosine`, `noise_gap` (draw, t), with
`…_predicted`, `pair_cosine_law` (quantile, t), `noise_gap_bound` (t); `pair_distance` (t).

All are optional. Values that a run did not reach are NaN.
"""

from collections.abc import Iterable

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

DEPTH = "depth $t$ (dimensionless)"


def values(data: xr.Dataset, name: str, *dims: str) -> Float[np.ndarray, "..."]:
    """Return variable `name` in double precision with the dimensions in the order `dims`."""
    return data[name].transpose(*dims).to_numpy().astype(float)


def curves(data: xr.Dataset, name: str) -> Float[np.ndarray, "heads path t"]:
    """Return a quantity that every path has at every time."""
    return values(data, name, "heads", "path", "t")


def coordinate(data: xr.Dataset, name: str) -> Float[np.ndarray, "_"]:
    """Return a coordinate as a floating array; without one, 0, 1, 2, …"""
    return data[name].to_numpy().astype(float)


def cases(data: xr.Dataset, dim: str, symbol: str) -> list[str]:
    """Return labels such as `H = 10` for the entries along `dim`."""
    return [f"{symbol} = {value:g}" for value in coordinate(data, dim)]


def present(data: xr.Dataset, names: Iterable[str]) -> list[str]:
    """Return the names that are variables of `data`, in the order asked for."""
    return [name for name in names if name in data.data_vars]


def mean_over_paths(array: Float[np.ndarray, "*case path t"]) -> Float[np.ndarray, "*case t"]:
    """Return the arithmetic mean over the paths that are finite; NaN where none is.

    `numpy.nanmean` gives the same numbers and a warning for an empty slice, which is no fault here.
    """
    finite = np.isfinite(array)
    count = finite.sum(axis=-2)
    total = np.where(finite, array, 0.0).sum(axis=-2)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def snapshot_frames(tokens: xr.DataArray) -> Int[np.ndarray, "k"]:
    """Return the indices of the frames nearest to the times in the attribute `snapshots`.

    Without times: four frames evenly spread, the first and the last among them.
    """
    times = tokens["frame_t"].to_numpy().astype(float)
    wanted = tokens.attrs.get("snapshots")
    if wanted is None or not np.size(wanted):
        return np.unique(np.linspace(0, times.size - 1, min(4, times.size)).round().astype(int))
    nearest = [int(np.abs(times - time).argmin()) for time in np.atleast_1d(np.asarray(wanted, float))]
    return np.asarray(list(dict.fromkeys(nearest)), int)


def settling(data: xr.Dataset) -> list[tuple[str, str]]:
    """Return for each case the verdict on its settling and a remark, which may be empty.

    That nothing settled says little where the record ends before the window does, or while G² is below the tolerance.
    """
    t, slopes = coordinate(data, "t"), values(data, "settling_slope", "case", "t")
    window, tolerance = (float(data.attrs.get(name, np.nan)) for name in ("window", "tolerance"))
    length = t[-1] - t[0] if t.size else 0.0
    found = []
    for settled, slope in zip(values(data, "settling_time", "case"), slopes, strict=True):
        blank = np.flatnonzero(~np.isfinite(slope))
        missed = np.flatnonzero(~(slope < tolerance))
        if np.isfinite(settled):
            found.append((f"settles at t = {settled:.4g}", ""))
        elif blank.size:
            found.append(("cannot tell", f"G² is not finite from t = {t[blank[0]]:.3g} on"))
        elif length < window * (1 - 1e-6):
            found.append(("record too short to tell", f"{length:.3g}, shorter than the window {window:.3g}"))
        elif not missed.size or missed[-1] < t.size - 1:
            since = t[missed[-1] + 1] if missed.size else t[0]
            found.append(("record too short to tell", f"G² below the tolerance from t = {since:.3g} on"))
        else:
            found.append(("does not settle", ""))
    return found


def scaling_levels(data: xr.Dataset) -> Float[np.ndarray, "series level"]:
    """Return the levels of every series, its own or those that all share."""
    if "scaling_level" in data:
        return values(data, "scaling_level", "series", "level")
    shared = coordinate(data, "level")
    return np.broadcast_to(shared, (data.sizes["series"], shared.size))


def scaling_level_names(data: xr.Dataset) -> list[str]:
    """Return for every series what its levels are."""
    if "scaling_level_name" in data:
        return [str(name) for name in data["scaling_level_name"].to_numpy()]
    shared = data["scaling_level" if "scaling_level" in data else "level"].attrs.get("long_name", "level")
    return [str(shared)] * data.sizes["series"]


def scaling_powers(data: xr.Dataset) -> list[Float[np.ndarray, "series"]]:
    """Return power, low and high end of its interval, prefactor and expected power; NaN where there is none."""
    names = ("power", "power_low", "power_high", "prefactor", "power_expected")
    nothing = np.full(data.sizes["series"], np.nan)
    return [values(data, f"scaling_{name}", "series") if f"scaling_{name}" in data else nothing for name in names]
