"""Predictions: closed forms and scalar laws, given as right-hand sides and not solved here."""

from ._gegenbauer import harmonics_of_degree as harmonics_of_degree
from .activation_kernel import ActivationKernel as ActivationKernel
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
from .mean_field import (
    growth_rate as growth_rate,
    growth_rate_unnormalised as growth_rate_unnormalised,
    kernel_eigenvalue as kernel_eigenvalue,
)
from .own_noise import noisy_growth_rate as noisy_growth_rate, stationary_order as stationary_order
from .pairs import (
    correlation as correlation,
    moment_exponent as moment_exponent,
    pair_drift as pair_drift,
    pair_variance as pair_variance,
)
from .stability import (
    gronwall_exponent as gronwall_exponent,
    gronwall_rate as gronwall_rate,
    largest_norm as largest_norm,
)
from .synchronisation import (
    dissipation_rate as dissipation_rate,
    energy_decay as energy_decay,
    is_dissipative as is_dissipative,
    lyapunov_exponents as lyapunov_exponents,
    pair_rate as pair_rate,
    smallest_bias as smallest_bias,
)
from .value_noise import (
    value_noise_exponent_near_antipodes as value_noise_exponent_near_antipodes,
    value_noise_exponent_near_coincidence as value_noise_exponent_near_coincidence,
)
