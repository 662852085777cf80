"""Claims about the mean field: the linear theory of the uniform density, and the limit of many tokens."""

import numpy as np

from .claims import Measurement, claim, shared
from .mean_field import MeanField
from .mean_field_solve import follow_density, measured_rates, predicted_rates, token_errors
from .power_law import PowerLaw, fit_power_law
from .unit import Arrays

RATES = "arXiv:2410.23228"
LIMIT = "arXiv:2312.10794"
# Of the bases, enough for the kernel at the largest β.
DEGREES = {2: 16, 3: 12}
MODES = 8


@claim(RATES, "S^1: mode k leaves the uniform density at rate k^2 I_k(b)/(b I_0(b)) (softmax; largest relative error)")
def growth_rates_on_the_circle(quick: bool) -> Measurement:
    return _largest_error(2, "softmax", quick)


@claim(RATES, "S^1: mode k leaves the uniform density at rate k^2 I_k(b)/b (unnormalised; largest relative error)")
def growth_rates_on_the_circle_unnormalised(quick: bool) -> Measurement:
    return _largest_error(2, "unnormalised", quick)


@claim(
    LIMIT,
    "S^2: degree l leaves the uniform density at rate l(l+1)L_l/(b L_0), L_l = ½∫e^{bs}P_l (largest relative error)",
)
def growth_rates_on_the_sphere(quick: bool) -> Measurement:
    return _largest_error(3, "softmax", quick)


@claim(LIMIT, "S^2: degree l leaves the uniform density at rate l(l+1)L_l/b (unnormalised; largest relative error)")
def growth_rates_on_the_sphere_unnormalised(quick: bool) -> Measurement:
    return _largest_error(3, "unnormalised", quick)


@claim("continuity equation", "S^1: the mass of a density that clusters does not change (largest drift)")
def mass_of_the_density(quick: bool) -> Measurement:
    mass = follow_density(MeanField(d=2, degree=16 if quick else 32, T=0.5 if quick else 1.0))["mass"]
    return Measurement(0.0, float(np.abs(mass - 1).max()), 0.0, 1e-14)


@claim(LIMIT, "S^1: the energy of n tokens drawn from a density tends to that of the density like n^b (exponent b)")
def energy_of_many_tokens(quick: bool) -> Measurement:
    return _power(quick, "energy")


@claim(LIMIT, "S^1: the W_2 distance of n tokens drawn from a density to the density falls like n^b (exponent b)")
def distance_of_many_tokens(quick: bool) -> Measurement:
    return _power(quick, "W_2")


def _largest_error(d: int, law: str, quick: bool) -> Measurement:
    spec = MeanField(d=d, degree=DEGREES[d], modes=MODES)
    worst = 0.0
    for beta in (1.0, 4.0) if quick else (1.0, 2.0, 4.0, 9.0):
        gap = measured_rates(spec, law, beta)["rate"] / predicted_rates(spec, law, beta) - 1
        worst = max(worst, float(np.abs(gap).max()))
    return Measurement(0.0, worst, 0.0, 1e-3)


def _power(quick: bool, quantity: str) -> Measurement:
    """The exponent; few draws determine it to 0.2, many to 0.1."""
    law = _law(quick, quantity)
    width = 0.25 if quick else 0.1
    return Measurement(-0.5, law.exponent, -0.5 - width, -0.5 + width, (law.high - law.low) / 2)


def _law(quick: bool, quantity: str) -> PowerLaw:
    errors = _errors(quick)
    return fit_power_law(np.array([*errors]), np.array([error[quantity] for error in errors.values()]), seed=0)


@shared
def _errors(quick: bool) -> dict[int, Arrays]:
    """The errors of every draw for several numbers of tokens."""
    sizes = {"n": [20, 320], "draws": 24, "degree": 16, "T": 0.5} if quick else {"draws": 64}
    spec = MeanField(d=2, **sizes)
    density = follow_density(spec)
    return {n: token_errors(spec, n, density) for n in spec.n}
