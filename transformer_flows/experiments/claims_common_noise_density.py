"""Claims about the mean field under common noise (arXiv:2604.26898): its mean, and the tokens that tend to it."""

import jax
import jax.numpy as jnp
import numpy as np

from ..integrate import solve_ensemble
from .claims import Measurement, claim, shared
from .common_noise_density import CommonNoiseDensity
from .common_noise_density_solve import density_flow, follow_density, noise_variance, start, token_errors
from .moving_weights import fold
from .power_law import fit_power_law
from .unit import Arrays

SOURCE = "arXiv:2604.26898"


@claim(
    SOURCE,
    "S^1, common noise: on one path the moments of n tokens tend to those of the density like n^b (exponent b)",
)
def tokens_on_a_path_of_the_noise(quick: bool) -> Measurement:
    errors = _errors(quick)
    moments = np.array([error["moments"] for error in errors.values()])
    law = fit_power_law(np.array([*errors]), moments, seed=0, paired=True)
    width = 0.2 if quick else 0.1
    return Measurement(-0.5, law.exponent, -0.5 - width, -0.5 + width, (law.high - law.low) / 2)


@claim(
    SOURCE,
    "S^1, no attention: the mean over the noise of mode l of the density decays at rate l^2 k(1)/2 (l = 1; over that)",
)
def heat_of_the_mean_density(quick: bool) -> Measurement:
    spec, members = (
        CommonNoiseDensity(attention=0, degree=8, field_degree=3, bias=0.3, T=2.0, strength=2.0),
        3000 if quick else 10000,
    )
    flow, first = density_flow(spec), start(spec)
    keys = jax.vmap(lambda member: jax.random.fold_in(fold(spec.seed, 2), member))(jnp.arange(members))
    ends = solve_ensemble(flow, first, [0.0, spec.T], keys, dt=0.02).states
    assert ends is not None
    mode = np.asarray(ends)[:, -1, 1]  # the cosine of degree 1
    rate = noise_variance(spec) / 2 * spec.T
    error = 1.96 * mode.std() / members**0.5 / mode.mean() / rate
    return Measurement(1.0, -np.log(mode.mean() / float(first[1])) / rate, 1 - 1.5 * error, 1 + 1.5 * error, error)


@shared
def _errors(quick: bool) -> dict[int, Arrays]:
    """The errors on every path for several numbers of tokens."""
    sizes = {"n": [50, 200, 800], "paths": 24} if quick else {"n": [100, 400, 1600], "paths": 24}
    spec = CommonNoiseDensity(records=11, **sizes)
    density = follow_density(spec)
    return {n: token_errors(spec, n, density) for n in spec.n}
