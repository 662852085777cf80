"""The dataset of a moving-heads run, put together from its pieces."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .moving_heads_solve import BALANCE, frame_records, times
from .power_law import fit_power_law
from .unit import Arrays

if TYPE_CHECKING:
    import xarray

    from .moving_heads import MovingHeads

UNITS = {"units": "dimensionless"}
CURVES = {
    "slope": "G², the squared metric derivative",
    "dissipation_rate": "S, the rate at which the motion lowers the energy",
    "energy": "interaction energy",
    "clusters": "number of clusters",
    "order_parameter": "length of the mean token",
    "diameter": "largest geodesic distance of two tokens",
}
ACCUMULATED = {
    "balance_energy_change": "E(t) − E(0)",
    "balance_weight_drift": "energy change by the drift of the weights",
    "balance_ito": "Itô term",
    "balance_martingale": "martingale",
    "balance_dissipation": "accumulated dissipation",
    "balance_remainder": "realised minus expected second-order term of the noise",
    "balance_residual": "energy change that the terms do not explain",
}
LONG_NAMES = CURVES | ACCUMULATED


def moving_heads_dataset(spec: "MovingHeads", pieces: Mapping[tuple[int, int], Sequence[Arrays]]) -> "xarray.Dataset":
    """Named arrays from the chunks of every (heads, path)."""
    import xarray

    ts = times(spec, np.arange(spec.records + 1))
    recorded = {*spec.quantities, *(ACCUMULATED if BALANCE in spec.quantities else ())}
    curves = {name: _stack(spec, pieces, _joined, name) for name in CURVES if name in recorded}
    curves |= {name: _stack(spec, pieces, _summed, name) for name in ACCUMULATED if name in recorded}
    variables: dict[str, Any] = {
        name: (("heads", "path", "t"), values, _about(LONG_NAMES[name])) for name, values in curves.items()
    }
    variables["tokens"] = (
        ("heads", "frame_t", "token", "axis"),
        np.array([_joined(pieces[heads, 0], "tokens") for heads in spec.heads]),
        _about("tokens of path 0") | {"snapshots": list(spec.snapshots)},
    )
    settled, power = _settled(spec, ts, curves["slope"]) if "slope" in curves else ({}, {})
    variables |= settled
    variables["end_time"] = (("heads", "path"), _stack(spec, pieces, _last, "end_time"), _about("time reached"))
    return xarray.Dataset(
        variables,
        coords={
            "heads": list(spec.heads),
            "path": np.arange(spec.paths),
            "t": ("t", ts, _about("depth t")),
            "frame_t": ("frame_t", times(spec, frame_records(spec)), _about("depth t")),
            "token": np.arange(spec.n),
            "axis": np.arange(spec.d),
        },
        attrs=spec.about | power,
    )


def _settled(spec: "MovingHeads", ts: np.ndarray, slope: np.ndarray) -> tuple[dict[str, Any], dict[str, float]]:
    """The mean of G² after settling as a variable, and its power law in the number of heads as attributes."""
    late = ts >= spec.settle * (1 - 1e-9)  # times are k·dt with its rounding
    mean = slope[:, :, late].mean(axis=-1)
    law = fit_power_law(np.array(spec.heads), mean, spec.seed)
    variable = (("heads", "path"), mean, _about(f"mean of G² over t ≥ {spec.settle:g}"))
    return {"mean_slope": variable}, {
        "power_prefactor": law.prefactor,
        "power_exponent": law.exponent,
        "power_exponent_low": law.low,
        "power_exponent_high": law.high,
    }


def _about(long_name: str) -> dict[str, Any]:
    return UNITS | {"long_name": long_name}


def _stack(spec: "MovingHeads", pieces, join, name: str) -> np.ndarray:
    """(heads, path, t) from the chunks of each path."""
    return np.array([[join(pieces[heads, path], name) for path in range(spec.paths)] for heads in spec.heads])


def _joined(chunks: Sequence[Arrays], name: str) -> np.ndarray:
    """Chunks end to end."""
    return np.concatenate([chunk[name] for chunk in chunks])


def _summed(chunks: Sequence[Arrays], name: str) -> np.ndarray:
    """Accumulated terms end to end: every chunk goes on from the total of those before it."""
    totals = np.cumsum([0.0, *[chunk[name][-1] for chunk in chunks[:-1]]])
    return np.concatenate([chunk[name] + total for chunk, total in zip(chunks, totals, strict=True)])


def _last(chunks: Sequence[Arrays], name: str) -> np.ndarray:
    return chunks[-1][name]
