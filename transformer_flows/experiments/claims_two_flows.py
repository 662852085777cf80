"""Claims about the transformer's flow and the exact gradient flow (arXiv:2605.18870)."""

from typing import TYPE_CHECKING

import numpy as np

from .claims import Measurement, claim, shared
from .runner import compute
from .two_flows import TwoFlows

if TYPE_CHECKING:
    import xarray

SOURCE = "arXiv:2605.18870"
TOLERANCE = 1e-7


@claim(SOURCE, "gradient flow, 3 heads: the energy-dissipation identity closes (largest residual)")
def identity_of_the_gradient_flow(quick: bool) -> Measurement:
    return _largest(_flow("mobility", quick)["flow_identity_residual"])


@claim(SOURCE, "head-averaged flow, 3 heads: the energy balance with S closes (largest residual)")
def balance_of_the_transformer(quick: bool) -> Measurement:
    return _largest(_flow("attention", quick)["flow_balance_residual"])


@claim(SOURCE, "head-averaged flow: S^2 <= G^2 slope^2 at all times (largest ratio of the two sides)")
def dissipation_is_bounded(quick: bool) -> Measurement:
    data = _flow("attention", quick)
    ratio = data["flow_dissipation"] ** 2 / (data["flow_slope"] * data["flow_energy_slope"])
    return Measurement(1.0, float(ratio.max()), 0.0, 1.0)


@claim(
    SOURCE,
    "G^2 is the energy's dissipation for several heads (S / G^2 at the start, 3 heads)",
    contradicted="S/G^2 is 1 for one head or equal heads only: S is the dissipation, G^2 the squared metric derivative",
)
def slope_is_the_dissipation(quick: bool) -> Measurement:
    data = _flow("attention", quick).isel(t=0)
    return Measurement(1.0, float(data["flow_dissipation"] / data["flow_slope"]), 0.999, 1.001)


@shared
def _flow(name: str, quick: bool) -> "xarray.Dataset":
    # fixed steps: the integrals of the balance have no part in the error control of adaptive ones
    sizes = {"n": 20, "T": 2.0, "records": 21} if quick else {"n": 60, "T": 10.0}
    return compute(TwoFlows(flows=[name], heads=[3], adaptive=False, **sizes)).isel(flow=0, heads=0)


def _largest(residual: "xarray.DataArray") -> Measurement:
    return Measurement(0.0, float(np.abs(residual).max()), 0.0, TOLERANCE)
