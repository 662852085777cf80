"""Predictions: closed forms and scalar laws, given as right-hand sides and not solved here."""

from .energies import (
    uniform_energy as uniform_energy,
    uniform_energy_ornstein_uhlenbeck as uniform_energy_ornstein_uhlenbeck,
)
from .equiangular import (
    equiangular_cosine_at_zero_beta as equiangular_cosine_at_zero_beta,
    equiangular_rate as equiangular_rate,
    equiangular_rate_unnormalised as equiangular_rate_unnormalised,
    two_token_rate as two_token_rate,
)
