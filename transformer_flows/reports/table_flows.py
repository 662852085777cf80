"""Blocks of the summary: two flows, convergence, proximal steps, distances, stability, long time, mean field."""

import numpy as np
import xarray as xr

from .access import cases, coordinate, present, scaling_levels, scaling_powers, settling, values
from .cells import Block, number

FLOW_ROWS = {
    "flow_dissipation": "S at t = {t}",
    "flow_slope": "G² at t = {t}",
    "flow_energy_slope": "slope² at t = {t}",
    "flow_action": "action of the heads at t = {t}",
    "flow_energy": "energy at t = {t}",
}
RESIDUAL_ROWS = {
    "flow_balance_residual": "largest |residual| of the balance",
    "flow_identity_residual": "largest |residual| of the energy-dissipation identity",
}
FHT = ("flow", "heads", "t")


def two_flows(data: xr.Dataset) -> Block:
    """Return a column per number of heads and flow, so that the flows stand side by side."""
    shown, left = present(data, FLOW_ROWS), present(data, RESIDUAL_ROWS)
    if not shown + left or not data.sizes["t"]:
        return [], []
    t = number(coordinate(data, "t")[-1])
    flows = [str(flow) for flow in data["flow"].to_numpy()]
    columns = [f"{flow}, {label}" for label in cases(data, "heads", "H") for flow in flows]
    rows = [(FLOW_ROWS[name].format(t=t), _cells(values(data, name, *FHT)[..., -1].T)) for name in shown]
    rows += [(RESIDUAL_ROWS[name], _cells(np.abs(values(data, name, *FHT)).max(axis=-1).T, 2)) for name in left]
    return columns, rows


def scaling(data: xr.Dataset) -> Block:
    """Return a column per quantity (power, interval, expected power) and a row per series."""
    if "scaling_error" not in data or not data["scaling_error"].size:
        return [], []
    levels, powers = scaling_levels(data), scaling_powers(data)
    rows = []
    for i, name in enumerate(data["series"].to_numpy()):
        power, low, high, _, expected = (float(numbers[i]) for numbers in powers)
        interval = f"[{number(low, 3)}, {number(high, 3)}]" if np.isfinite([low, high]).all() else "–"
        ends = f"{number(levels[i].min(), 3)} … {number(levels[i].max(), 3)}"
        rows.append((str(name), (number(power, 3), interval, number(expected, 3), ends)))
    return ["power", "interval", "expected", "levels"], rows


def movements(data: xr.Dataset) -> Block:
    """Return a column per tau: energies at the ends of the steps, and the largest rise."""
    if "step_energy" not in data:
        return [], []
    energy = values(data, "step_energy", "tau", "step")
    rows = [
        ("energy before the steps", _cells(energy[:, 0])),
        ("energy after the steps", _cells(energy[:, -1])),
        ("largest rise in a step", _cells(np.diff(energy).max(axis=1), 2)),
    ]
    return cases(data, "tau", "τ"), rows


def distances(data: xr.Dataset) -> Block:
    """Return a column per norm of the heads: the distance over W_2 (largest and smallest), and its bounds."""
    names = [f"distance_{name}" for name in ("value", "lower", "upper")]
    if not set(names) <= set(data.data_vars):
        return [], []
    value, lower, upper = (values(data, name, "norm", "draw") for name in names)
    plain = (lower * upper) ** 0.5
    ratio = value / plain
    rows = [
        ("lower bound of W_m/W₂", _cells((lower / plain)[:, 0])),
        ("smallest W_m/W₂", _cells(ratio.min(axis=1))),
        ("largest W_m/W₂", _cells(ratio.max(axis=1))),
        ("upper bound of W_m/W₂", _cells((upper / plain)[:, 0])),
    ]
    return cases(data, "norm", "Λ"), rows


def stability(data: xr.Dataset) -> Block:
    """Return a column per case: the largest growth, the bound, their exponents, and the gap under reordering."""
    if not {"growth", "growth_bound"} <= set(data.data_vars):
        return [], []
    growth = values(data, "growth", "case", "perturbation", "t")
    rows = [
        ("largest growth of W₂", _cells(growth.max(axis=(1, 2)))),
        ("bound at the last time", _cells(values(data, "growth_bound", "case", "t")[:, -1], 3)),
    ]
    for name, label in {
        "growth_rate": "largest exponent",
        "growth_rate_bound": "smallest exponent of the bound",
    }.items():
        if name in data:
            exponents = values(data, name, "case", "t", *(["perturbation"] if name == "growth_rate" else []))[:, 1:]
            flat = exponents.reshape(len(exponents), -1)
            rows.append((label, _cells(flat.max(axis=1) if name == "growth_rate" else flat.min(axis=1), 3)))
    if "permutation_gap" in data:
        rows.append(("gap under reordering of the tokens", _cells(values(data, "permutation_gap", "case"), 2)))
    return [str(case) for case in data["case"].to_numpy()], rows


def long_time(data: xr.Dataset) -> Block:
    """Return a column per case: whether weights and tokens come to rest."""
    if not {"settling_slope", "settling_time"} <= set(data.data_vars):
        return [], []
    t = number(coordinate(data, "t")[-1])
    rows = [(f"G² at t = {t}", _cells(values(data, "settling_slope", "case", "t")[:, -1], 3))]
    if "settling_energy_slope" in data:
        rows.append((f"slope² at t = {t}", _cells(values(data, "settling_energy_slope", "case", "t")[:, -1], 3)))
    rows.append(("settling", tuple(verdict for verdict, _ in settling(data))))
    labels = {
        "limit_slope": "slope² under the limit of the heads",
        "weight_variation": "path length of the weights (per root of H)",
    }
    rows += [(labels[name], _cells(values(data, name, "case"))) for name in present(data, labels)]
    if "weight_variation_tail" in data:
        tails = values(data, "weight_variation_tail", "case")
        rows.append(("… still to come", _cells(tails, 2)))
    return [str(case) for case in data["case"].to_numpy()], rows


def growth_rates(data: xr.Dataset) -> Block:
    """Return a column per case: the growth rate of every mode, measured and predicted, and how far they are apart."""
    if not {"rate", "rate_predicted"} <= set(data.data_vars):
        return [], []
    measured, predicted = values(data, "rate", "mode", "case"), values(data, "rate_predicted", "mode", "case")
    name, rows = data["mode"].attrs.get("long_name", "mode"), []
    for k, mode in enumerate(coordinate(data, "mode")):
        rows.append((f"{name} {mode:g}: growth rate", _cells(measured[k])))
        rows.append((f"{name} {mode:g}: predicted", _cells(predicted[k])))
    with np.errstate(divide="ignore", invalid="ignore"):
        rows.append(("largest relative error", _cells(np.abs(measured / predicted - 1).max(axis=0), 2)))
    return [str(case) for case in data["case"].to_numpy()], rows


def mean_field(data: xr.Dataset) -> Block:
    """Return one column: how well the basis resolves the density, at the worst time."""
    if not {"density_least", "density_tail"} <= set(data.data_vars):
        return [], []
    # fmin and fmax skip what is NaN, and say so by NaN where all is
    least, tail = values(data, "density_least", "t"), values(data, "density_tail", "t")
    rows = [
        ("least density at the nodes (negative: not resolved)", (number(float(np.fmin.reduce(least)), 3),)),
        ("largest part of the highest degree in the density", (number(float(np.fmax.reduce(tail)), 2),)),
    ]
    if "density_mass" in data:
        change = float(np.fmax.reduce(np.abs(values(data, "density_mass", "t") - 1)))
        rows.append(("largest change of the mass", (number(change, 2),)))
    return ["density"], rows


def _cells(table: np.ndarray, digits: int = 4) -> tuple[str, ...]:
    return tuple(number(float(value), digits) for value in table.ravel())
