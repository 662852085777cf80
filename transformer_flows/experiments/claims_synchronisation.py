"""Claims about deep networks with random MLPs and their common-noise limit (arXiv:2604.26898)."""

import dataclasses

import jax
import numpy as np

from .. import theory
from ..theory import ActivationKernel
from .chaos import Chaos, distances, proved_power
from .claims import Measurement, claim, shared
from .common_noise_rates import CommonNoiseRates, critical_distance, kolmogorov_distances
from .common_noise_rates_solve import exponents, gap_energies, pair_law, two_tokens
from .long_network import LongNetwork, follow
from .network_limit import NetworkLimit
from .network_limit_solve import follow_flow, follow_network, one_layer_errors, worst
from .power_law import fit_power_law

PAPER = "arXiv:2604.26898"


@claim(PAPER, "ReLU: λ_1 = −σ_u²/2 − (d−1)(σ_b²+2σ_c²)/4 (largest error over d and scales)")
def largest_exponent_of_relu(quick: bool) -> Measurement:
    worst_error = 0.0
    for d, weight, hidden, output in ((3, 1 / 3, 0.0, 0.0), (5, 0.2, 0.01, 0.01), (64, 1 / 64, 0.3, 0.1)):
        kernel = ActivationKernel(jax.nn.relu, d, weight, hidden, output)
        found = float(theory.lyapunov_exponents(kernel)[0])
        worst_error = max(worst_error, abs(found + weight / 2 + (d - 1) * (hidden + 2 * output) / 4))
    return Measurement(0.0, worst_error, 0.0, 1e-12)


@claim(PAPER, "the largest Lyapunov exponent of the flow under common noise is λ_1 (measured / λ_1)")
def largest_exponent(quick: bool) -> Measurement:
    spec = _rates(quick)
    drawn = exponents(spec)["exponents"][:, 0] / float(theory.lyapunov_exponents(spec.kernel)[0])
    return _mean(drawn, 1.0)


@claim(PAPER, "one token forgets its start: E⟨X_t, X_0⟩ = e^{−(d−1)k(1)t/2} (at the time where it is 1/e)")
def correlation_of_one_token(quick: bool) -> Measurement:
    spec = _rates(quick)
    return _mean(_pairs(quick)["correlation"][:, 1], float(theory.correlation(spec.kernel, spec.times[1])))


@claim(PAPER, "the cosine of two tokens follows its scalar equation (largest Kolmogorov–Smirnov distance of the laws)")
def law_of_two_tokens(quick: bool) -> Measurement:
    spec = _rates(quick)
    found = kolmogorov_distances(_pairs(quick)["cosine"], pair_law(spec)["cosine"]).max()
    return Measurement(0.0, float(found), 0.0, critical_distance(spec.draws, spec.samples))


@claim(PAPER, "without attention E[E_β] decays at least at the rate −λ̄' (measured rate, at most λ̄')")
def decay_of_the_energy(quick: bool) -> Measurement:
    spec = dataclasses.replace(_rates(quick), d=5, draws=200 if quick else 400)  # no bound is negative for d <= 3
    gap = gap_energies(spec)["gap"]
    rates = np.log(gap.mean(axis=0)[-1] / gap.mean(axis=0)[0]) / spec.T
    error = 2 * gap[:, -1].std() / gap[:, -1].mean() / len(gap) ** 0.5 / spec.T
    bound = float(theory.dissipation_rate(spec.kernel, spec.beta))
    return Measurement(bound, float(rates), -np.inf, bound + error, error)


@claim(PAPER, "the squared error of a network of L layers on one noise path falls like L^b (exponent b)")
def depth_limit(quick: bool) -> Measurement:
    spec = _limits(quick)
    flow = follow_flow(spec)
    errors = np.array([worst(flow, follow_network(spec, L, None)) for L in spec.depths])
    return _power(np.array(spec.depths, float), errors, -1.0, 0.35 if quick else 0.2)


@claim(PAPER, "the squared error of one layer of width m falls like m^b (exponent b)")
def width_limit_of_one_layer(quick: bool) -> Measurement:
    spec = _limits(quick)
    errors = one_layer_errors(spec)
    return _power(np.array(spec.widths, float), np.array([*errors.values()]), -1.0, 0.2 if quick else 0.1)


@claim(PAPER, "the squared error of a network of width m against the limit falls like m^b (exponent b)")
def width_limit_of_the_network(quick: bool) -> Measurement:
    spec = _limits(quick)
    limit = follow_network(spec, spec.layers, None)
    errors = np.array([worst(limit, follow_network(spec, spec.layers, m)) for m in spec.widths])
    return _power(np.array(spec.widths, float), errors, -1.0, 0.35 if quick else 0.2)


@claim(PAPER, "d = 3: E sup W₂² of n tokens to very many on one noise path falls at least like n^(−1/2) (exponent)")
def chaos_in_three_dimensions(quick: bool) -> Measurement:
    return _chaos(quick, 3)


@claim(PAPER, "d = 6: E sup W₂² of n tokens to very many on one noise path falls at least like n^(−1/3) (exponent)")
def chaos_in_six_dimensions(quick: bool) -> Measurement:
    return _chaos(quick, 6)


@claim(PAPER, "ReLU networks on S³ lead to one cluster (share of the draws with |mean token| > 0.98 at depth 60)")
def one_cluster(quick: bool) -> Measurement:
    """Of six draws one in four is not there yet: the distances fall like e^{−t/8} times a lognormal factor."""
    order = _long("relu", quick)["order"][:, -1]
    return _share(order > 0.98)


@claim(PAPER, "tanh networks on S³ lead to two antipodal clusters (share of the draws with top eigenvalue > 0.99)")
def two_antipodal_clusters(quick: bool) -> Measurement:
    found = _long("tanh", quick)
    return _share((found["nematic"][:, -1] > 0.99) & (found["order"][:, -1] < 0.98))


@shared
def _pairs(quick: bool) -> dict[str, np.ndarray]:
    return two_tokens(_rates(quick))


def _rates(quick: bool) -> CommonNoiseRates:
    few = {"d": 3, "T": 2.0, "records": 3, "steps": 40, "draws": 1500, "n": 8, "long": 40.0, "long_draws": 12}
    return CommonNoiseRates(weight=0.2, bias=0.6, **few if quick else {})


def _limits(quick: bool) -> NetworkLimit:
    few = {"n": 4, "depths": [16, 64], "widths": [32, 256], "layers": 32, "finest": 1024, "draws": 32}
    return NetworkLimit(**few if quick else {"widths": [32, 64, 128, 256, 512], "draws": 48})


@shared
def _long(activation: str, quick: bool) -> dict[str, np.ndarray]:
    spec = LongNetwork(n=16 if quick else 64, width=64 if quick else 256, layers=3000 if quick else 6000, draws=32)
    return follow(dataclasses.replace(spec, record_every=spec.layers), activation)


def _chaos(quick: bool, d: int) -> Measurement:
    """The proved power is a bound: a smaller exponent agrees with it."""
    spec = Chaos(**{"n": [8, 32], "many": 256, "draws": 8, "records": 3, "steps": 16} if quick else {})
    errors = np.array([distances(spec, d, draw)["worst"] for draw in range(spec.draws)]).T
    law = fit_power_law(np.array(spec.n, float), errors, seed=0, paired=True)
    error = (law.high - law.low) / 2
    return Measurement(proved_power(d), law.exponent, -np.inf, proved_power(d) + error, error)


def _mean(drawn: np.ndarray, predicted: float) -> Measurement:
    """Within three standard errors of what is predicted, and one percent for the steps."""
    error = 3 * float(drawn.std()) / len(drawn) ** 0.5
    width = error + 0.01 * abs(predicted)
    return Measurement(predicted, float(drawn.mean()), predicted - width, predicted + width, error)


def _share(reached: np.ndarray) -> Measurement:
    """Most draws must be there; the limit of infinite depth is all of them."""
    share = float(reached.mean())
    return Measurement(1.0, share, 0.5, 1.0, 2 * (share * (1 - share) / len(reached)) ** 0.5)


def _power(levels: np.ndarray, errors: np.ndarray, predicted: float, width: float) -> Measurement:
    law = fit_power_law(levels, errors, seed=0, paired=True)
    error = (law.high - law.low) / 2
    return Measurement(predicted, law.exponent, predicted - width, predicted + width, error)
