"""Which figures there are, and which variables each needs: the one place that decides what a report shows."""

from collections.abc import Callable
from dataclasses import dataclass

import xarray as xr
from matplotlib.figure import Figure

from .balance import plot_balance
from .bound import plot_bound
from .diagram import plot_diagram
from .distances import plot_distances
from .equiangular import plot_equiangular, plot_hitting_times
from .layers import plot_cosines, plot_order, plot_synchronisation
from .limits import plot_limits
from .mean_field import plot_density, plot_growth_rates
from .movements import plot_movements
from .noise import plot_noise_rates
from .noisy_density import plot_noisy_density
from .scaling import plot_scaling
from .settling import plot_settling
from .snapshots import plot_snapshots
from .sweep import plot_sweep
from .time_series import plot_clusters, plot_energy, plot_slope
from .two_flows import plot_two_flows


@dataclass(frozen=True)
class Drawing:
    """A figure: its file name, its function, its caption, and what must be there for it to be drawn.

    That is all variables in `needs`, one of those in `needs_one_of`, and two entries along each dimension in
    `needs_several`.
    """

    name: str
    plot: Callable[[xr.Dataset], Figure]
    caption: str
    needs: tuple[str, ...] = ()
    needs_one_of: tuple[str, ...] = ()
    needs_several: tuple[str, ...] = ()

    def fed_by(self, data: xr.Dataset) -> bool:
        """Say whether `data` has what the figure needs; an empty variable counts as missing."""
        there = {name for name, variable in data.data_vars.items() if variable.size}
        if any(data.sizes.get(dim, 0) < 2 for dim in self.needs_several):
            return False
        return there.issuperset(self.needs) and (not self.needs_one_of or not there.isdisjoint(self.needs_one_of))


DRAWINGS = (
    Drawing(
        "snapshots",
        plot_snapshots,
        "Tokens of the first path; the colour follows the token. On S² the far side of the sphere is faint, and tokens "
        "that coincide hide one another. In more than three dimensions: share of all pairs by cosine.",
        needs=("tokens",),
    ),
    Drawing(
        "slope",
        plot_slope,
        "G², the squared metric derivative, and S, the rate at which the flow lowers the energy. They agree for one "
        "head; for more, S may be negative, and such values do not show on the log axis.",
        needs_one_of=("slope", "dissipation_rate"),
    ),
    Drawing(
        "sweep",
        plot_sweep,
        "Mean of G² over t after settling, for each path and averaged over paths, with the fitted power law. The band "
        "shows the interval of the exponent.",
        needs=("mean_slope",),
        needs_several=("heads",),
    ),
    Drawing(
        "balance",
        plot_balance,
        "Above, the accumulated terms of the energy balance on the first path; a term that is zero is left out. Below, "
        "what is left over: every path thin, root mean square over paths bold. “Closed on every path” subtracts the "
        "remainder of the weight noise, whose mean is zero. The dotted line is the energy change itself.",
        needs=("balance_energy_change", "balance_dissipation"),
    ),
    Drawing("energy", plot_energy, "Interaction energy of tokens and weights over depth.", needs=("energy",)),
    Drawing(
        "clusters",
        plot_clusters,
        "Number of clusters, length of the mean token, and largest geodesic distance of two tokens over depth.",
        needs_one_of=("clusters", "order_parameter", "diameter"),
    ),
    Drawing(
        "equiangular",
        plot_equiangular,
        "Common cosine of tokens that start at equal angles: the simulation (thin) over the solution of the scalar "
        "equation (pale), and the distance of the two.",
        needs=("cosine", "cosine_predicted"),
    ),
    Drawing(
        "hitting_times",
        plot_hitting_times,
        "Depth at which the cosine reaches its level, simulated (dots) and predicted (lines).",
        needs=("hitting_time", "hitting_time_predicted"),
    ),
    Drawing(
        "clustering_diagram",
        plot_diagram,
        "Probability that two tokens have met, that is, have a cosine above a level close to 1, at depth t; with the "
        "time that the scalar equation predicts.",
        needs=("clustered",),
    ),
    Drawing(
        "two_flows",
        plot_two_flows,
        "The head-averaged flow of the transformer and the exact gradient flow from the same tokens under the same "
        "weights. S, G² and slope² agree for one head, and for the gradient flow with any number of them. The energy "
        "balance closes for both, the energy-dissipation identity for the gradient flow alone.",
        needs=("flow_slope", "flow_identity_residual"),
    ),
    Drawing(
        "growth_rates",
        plot_growth_rates,
        "Growth rates of small perturbations of the uniform density by mode, from a solve of the continuity equation "
        "(dots) and from linear theory (lines), and their relative distance.",
        needs=("rate", "rate_predicted"),
    ),
    Drawing(
        "density",
        plot_density,
        "The density of infinitely many tokens over depth, relative to the uniform measure.",
        needs=("density", "node_x"),
    ),
    Drawing(
        "noisy_density",
        plot_noisy_density,
        "The density of infinitely many tokens on one path of the common noise, and the histogram of finitely many on "
        "the same path, relative to the uniform measure.",
        needs=("noisy_density", "noisy_tokens"),
    ),
    Drawing(
        "scaling",
        plot_scaling,
        "Errors against the level: dots for single draws, diamonds for their mean, lines for the fitted powers.",
        needs=("scaling_error",),
    ),
    Drawing(
        "movements",
        plot_movements,
        "Energy after each proximal step under fixed heads. However long the step, the energy does not rise.",
        needs=("step_energy",),
    ),
    Drawing(
        "distances",
        plot_distances,
        "The distance weighted by the mobility of the heads, over W₂, against the largest norm of the heads, with the "
        "bounds between which it must lie.",
        needs=("distance_value", "distance_lower", "distance_upper"),
    ),
    Drawing(
        "bound",
        plot_bound,
        "Distance of two clouds under the same weights relative to its start, with the bound exp ∫C dt (dashed; cut "
        "off where it leaves the figure, and a remark where that is at once), and the exponents of both.",
        needs=("growth", "growth_bound"),
    ),
    Drawing(
        "synchronisation",
        plot_synchronisation,
        "Gap energy of tokens over the layers of a transformer with random MLPs; it is zero exactly at one cluster.",
        needs=("gap", "gap_rate"),
    ),
    Drawing(
        "cosines",
        plot_cosines,
        "How the cosines of all pairs of tokens are distributed after the last layer. Mass at 1 alone is one cluster, "
        "at 1 and −1 two antipodal ones.",
        needs=("cosine_share",),
    ),
    Drawing(
        "order",
        plot_order,
        "Length of the mean token (solid; 1 at one cluster) and largest eigenvalue of the second moment (dashed; 1 "
        "where all tokens lie on one axis) over depth, one line per draw, with the tokens of the first one at the end.",
        needs=("order", "nematic_order"),
    ),
    Drawing(
        "noise_rates",
        plot_noise_rates,
        "Tokens under common noise alone against the predictions of its kernel. The law of the cosine of two tokens is "
        "that of a scalar equation (black); the mean gap energy stays below its bound.",
        needs=("exponent", "pair_cosine_law", "noise_gap"),
    ),
    Drawing(
        "limits",
        plot_limits,
        "Squared error of a network of L layers and width m against the limit of both, on the same noise path. Each "
        "limit alone leaves the error of the other.",
        needs=("limits",),
    ),
    Drawing(
        "settling",
        plot_settling,
        "G², the speed of the tokens, and slope², how far they are from a stationary point of the energy under the "
        "heads of the moment. Integrable weights lead to a stationary point of the limit. Spread phases bring G² down "
        "although every head goes on swinging: that case is not the integrable one, and its slope² stays.",
        needs=("settling_slope", "settling_time"),
    ),
)


def figures(data: xr.Dataset) -> dict[str, Figure]:
    """Return every figure that the variables of `data` can feed, by name, in the order of a report."""
    return {drawing.name: drawing.plot(data) for drawing in DRAWINGS if drawing.fed_by(data)}
