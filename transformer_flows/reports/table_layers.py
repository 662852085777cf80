"""Blocks of the summary and notes on deep networks: what the kernel predicts beside what was measured."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from .access import coordinate, values
from .cells import Block, number

COLUMNS = {
    "kernel": "k(1)",
    "kernel_slope": "k'(1)",
    "lyapunov": "λ₁",
    "pair_rate": "λ̄",
    "gap_rate_bound": "bound λ̄' of E_β",
    "gap_rate": "measured rate of E_β",
    "step_size": "(T/L)(d−1)k(1)",
}


def synchronisation(data: xr.Dataset) -> Block:
    """Return a row per activation, dimension and bias without attention: the kernel's numbers and the measured rate."""
    if not {"gap", *COLUMNS} <= set(data.data_vars):
        return [], []
    columns = {name: values(data, name, "case") for name in COLUMNS}
    rows = []
    for i in _without_attention(data):
        cells = tuple(number(float(column[i]), 5) for column in columns.values())
        rows.append((_label(data, i), cells))
    return list(COLUMNS.values()), rows


def large_steps(data: xr.Dataset) -> Iterator[str]:
    """Say which networks are too coarse for the picture of an SDE."""
    if "step_size" not in data:
        return
    size, largest = values(data, "step_size", "case"), float(data.attrs.get("largest_step", 0.3))
    names = [_label(data, i) for i in _without_attention(data) if size[i] > largest]
    if names:
        yield (
            f"(T/L)(d−1)k(1) exceeds {largest:g} for {'; '.join(names)}: a layer moves tokens too far there for the "
            "limit of many layers."
        )


def _without_attention(data: xr.Dataset) -> list[int]:
    signs, names = coordinate(data, "attention"), data["activation"].to_numpy()
    return [i for i in range(len(signs)) if signs[i] == 0 and str(names[i]) != "none"]


def _label(data: xr.Dataset, i: int) -> str:
    d, bias = coordinate(data, "d")[i], coordinate(data, "bias")[i]
    return f"{data['activation'].to_numpy()[i]}, d = {d:g}, σ = {bias:g}"


def long_layers(data: xr.Dataset) -> Block:
    """Return a column per activation: both order parameters at the end, least and largest of the draws."""
    if not {"order", "nematic_order"} <= set(data.data_vars):
        return [], []
    t = number(coordinate(data, "t")[-1])
    rows = []
    for name, label in {
        "order": "length of the mean token",
        "nematic_order": "largest eigenvalue of the second moment",
    }.items():
        ends = values(data, name, "activation", "draw", "t")[..., -1]
        rows.append((f"{label} at t = {t}, least", tuple(number(float(end), 5) for end in ends.min(axis=1))))
        rows.append(("… and largest", tuple(number(float(end), 5) for end in ends.max(axis=1))))
    if "largest_exponent" in data:
        rows.append(
            ("λ₁ of the kernel", tuple(number(float(x), 4) for x in values(data, "largest_exponent", "activation")))
        )
    return [str(name) for name in data["activation"].to_numpy()], rows


def noise_rates(data: xr.Dataset) -> Block:
    """Return measured ± two standard errors beside predicted: exponents, correlation, law of two tokens, gap energy."""
    if not {"exponent", "token_correlation", "pair_distance", "noise_gap"} <= set(data.data_vars):
        return [], []
    drawn, predicted = values(data, "exponent", "draw_long", "index"), values(data, "exponent_predicted", "index")
    rows = [
        (f"Lyapunov exponent {i}", (_measured(drawn[:, i - 1]), number(float(predicted[i - 1]), 4)))
        for i in range(1, drawn.shape[1] + 1)
    ]
    t = number(coordinate(data, "t")[-1])
    correlation = values(data, "token_correlation", "draw", "t")[:, -1]
    wanted = float(values(data, "token_correlation_predicted", "t")[-1])
    rows.append((f"⟨X_t, X_0⟩ at t = {t}", (_measured(correlation), number(wanted, 4))))
    farthest = number(float(values(data, "pair_distance", "t").max()), 3)
    critical = f"< {number(float(data['pair_distance_critical']), 3)}"
    rows.append(("distance of the law of two tokens (largest)", (farthest, critical)))
    gap, bound = values(data, "noise_gap", "draw", "t")[:, -1], float(values(data, "noise_gap_bound", "t")[-1])
    rows.append((f"mean gap energy at t = {t}", (_measured(gap), f"≤ {number(bound, 4)}")))
    return ["measured", "predicted"], rows


def _measured(drawn: np.ndarray) -> str:
    return f"{number(float(drawn.mean()), 4)} ± {number(2 * float(drawn.std()) / len(drawn) ** 0.5, 2)}"
