"""The transformer's flow and the exact gradient flow side by side: what agrees for one and differs for the other."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .access import DEPTH, cases, coordinate, present, values
from .style import CATEGORICAL, blank, note, positive, styled

QUANTITIES = {
    "flow_dissipation": "$S$",
    "flow_slope": "$G^2$",
    "flow_energy_slope": "slope²",
    "flow_action": r"$\iint m|w|^2$",
}
RESIDUALS = {"flow_balance_residual": "energy balance", "flow_identity_residual": "energy-dissipation\nidentity"}
TITLES = {"attention": "attention (the transformer)", "mobility": "mobility (the gradient flow)"}


@styled
def plot_two_flows(data: xr.Dataset) -> Figure:
    """Draw S, G², slope² and the action over depth, and below them the residuals of balance and identity.

    Needs `flow_dissipation`, `flow_slope`, `flow_energy_slope` or `flow_action` (flow, heads, t), whichever are there,
    and `flow_balance_residual` or `flow_identity_residual`. Columns are flows; a pair of rows per number of heads.
    """
    t, labels = coordinate(data, "t"), cases(data, "heads", "$H$")
    flows = [str(flow) for flow in data["flow"].to_numpy()]
    shown, left = present(data, QUANTITIES), present(data, RESIDUALS)
    rows = 2 * len(labels)
    ratios = (1.5, 1.0) * len(labels)
    figure, axes = blank(
        rows, len(flows), panel=(4.0, 2.1), extra=(1.7, 0.4), sharex=True, sharey="row", height_ratios=ratios
    )
    # dashes, for lines that lie on one another
    dashes = ("-", (0, (5, 2)), (0, (3, 3)), (0, (1, 2)))
    for column, flow in enumerate(flows):
        for k, label in enumerate(labels):
            upper, lower = axes[2 * k, column], axes[2 * k + 1, column]
            for name, colour, dash in zip(shown, CATEGORICAL, dashes, strict=False):
                curve = values(data, name, "flow", "heads", "t")[column, k]
                style = {"color": colour, "linestyle": dash, "linewidth": 1.6}
                upper.plot(t, positive(curve), label=QUANTITIES[name], **style)
                _count_lost(upper, name, curve)
            for name, colour, dash in zip(left, CATEGORICAL[1::-1], dashes, strict=False):
                residual = np.abs(values(data, name, "flow", "heads", "t")[column, k])
                style = {"color": colour, "linestyle": dash, "linewidth": 1.4}
                lower.plot(t, positive(residual), label=RESIDUALS[name], **style)
            upper.set_yscale("log")
            lower.set_yscale("log")
            upper.set_title(f"{TITLES.get(flow, flow)}, {label}")
        axes[-1, column].set_xlabel(DEPTH)
    for ax in axes[:2, -1]:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), alignment="left")
    for upper, lower in zip(axes[::2, 0], axes[1::2, 0], strict=True):
        upper.set_ylabel("energy per depth")
        lower.set_ylabel("|residual|")
    figure.suptitle("Two flows under the same weights")
    return figure


def _count_lost(ax: Axes, name: str, curve: np.ndarray) -> None:
    lost = int((curve <= 0).sum())
    if lost:
        note(ax, f"{lost} of {curve.size} values of {QUANTITIES[name]} ≤ 0 not shown")
