"""Datasets made from formulas, with the names and dimensions of real runs and no solve."""

import numpy as np
import xarray as xr

BALANCE = ("weight_drift", "ito", "martingale", "dissipation", "remainder")


def moving_heads(heads=(1, 10, 100), paths=3, d=3, n=12, times=7, frames=6) -> xr.Dataset:
    """Curves that are positive, differ between heads and paths, and a balance that closes with a known residual."""
    rng = np.random.default_rng(0)
    t, frame_t = np.linspace(0.0, 20.0, times), np.linspace(0.0, 20.0, frames)
    shape = (len(heads), paths, times)
    dims = ("heads", "path", "t")
    tokens = rng.normal(size=(len(heads), frames, n, d))
    tokens /= np.linalg.norm(tokens, axis=-1, keepdims=True)
    terms = {name: np.cumsum(rng.uniform(0.1, 1.0, shape), axis=-1) for name in BALANCE}
    terms = {name: term - term[..., :1] for name, term in terms.items()}
    residual = terms["remainder"] + 1e-3 * t
    change = terms["weight_drift"] + terms["ito"] + terms["martingale"] - terms["dissipation"] + residual
    slope = rng.uniform(0.5, 2.0, shape) / np.asarray(heads, float)[:, None, None]
    data = xr.Dataset(
        {
            "tokens": (("heads", "frame_t", "token", "axis"), tokens, {"snapshots": [0, 16, 18, 20]}),
            "slope": (dims, slope),
            "dissipation_rate": (dims, 1.5 * slope),
            "energy": (dims, 1 + slope),
            "clusters": (dims, rng.integers(1, 6, shape)),
            "order_parameter": (dims, rng.uniform(0, 1, shape)),
            "diameter": (dims, rng.uniform(0, np.pi, shape)),
            "balance_energy_change": (dims, change),
            "balance_residual": (dims, residual),
            **{f"balance_{name}": (dims, term) for name, term in terms.items()},
            "mean_slope": (("heads", "path"), slope.mean(-1)),
        },
        coords={"heads": list(heads), "path": np.arange(paths), "t": t, "frame_t": frame_t},
        attrs={"title": "Köpfe auf S² — 头 <b>&amp;</b>", "kind": "moving_heads", "source": "Müller & Søn 2026"},
    )
    if len(heads) > 1:
        law = {"power_prefactor": 1.2, "power_exponent": -1.0, "power_exponent_low": -1.1, "power_exponent_high": -0.9}
        data.attrs |= law
    return data


def equiangular(betas=(0.0, 1.0, 4.0), times=9) -> xr.Dataset:
    """Logistic curves; the measured ones are off by 1e-6, and the last inverse temperature never hits."""
    t, beta = np.linspace(0.0, 30.0, times), np.asarray(betas)
    laws = ["softmax", "unnormalisé"]
    predicted = np.stack([np.tanh(t * np.exp(-k * beta[:, None])) for k in (0.5, 1.0)])
    hit = np.stack([2 * np.exp(k * beta) for k in (0.5, 1.0)])
    hit[:, -1] = np.nan if len(betas) > 1 else hit[:, -1]
    return xr.Dataset(
        {
            "cosine": (("law", "beta", "t"), predicted + 1e-6),
            "cosine_predicted": (("law", "beta", "t"), predicted),
            "hitting_time": (("law", "beta"), hit * 1.01),
            "hitting_time_predicted": (("law", "beta"), hit),
        },
        coords={"law": laws, "beta": beta, "t": t},
    )


def diagram(dimensions=(8, 128), betas=(0.5, 1.0, 4.0), times=5) -> xr.Dataset:
    """A probability that rises around a straight curve."""
    t, beta = np.linspace(0.0, 30.0, times), np.asarray(betas)
    curve = np.stack([1 + 2 * beta for _ in dimensions])
    clustered = 1 / (1 + np.exp(-(t - curve[..., None])))
    return xr.Dataset(
        {
            "clustered": (("d", "beta", "t"), clustered),
            "clustering_time_predicted": (("d", "beta"), curve),
        },
        coords={"d": list(dimensions), "beta": beta, "t": t},
    )
