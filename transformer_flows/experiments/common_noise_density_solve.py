"""The solves of the experiment on the density under common noise: the density on every path, and tokens on the same."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from ..dynamics import CommonNoiseDensityFlow, CommonNoiseFlow, DensityFlow
from ..geometry import FourierModes
from ..integrate import solve_ensemble
from ..models import GaussianField, Harmonics
from ..observables import Energy, LeastDensity
from .moving_weights import fold
from .random_layers import attention_of, kernel_of
from .unit import Arrays

if TYPE_CHECKING:
    from .common_noise_density import CommonNoiseDensity

# Names of the errors of tokens, and the largest degree of the moments that are compared.
QUANTITIES = ("energy", "moments")
LOW = 3
# Fixed numbers that keep the draws of one seed apart.
TOKENS, NOISE = range(2)


def follow_density(spec: "CommonNoiseDensity") -> Arrays:
    """Coefficients, energy and least density at the recorded times `(path, t, ...)`."""
    flow = density_flow(spec)
    observe = {"energy": Energy(), "least": LeastDensity()}
    run = solve_ensemble(flow, start(spec), _times(spec), _noises(spec), dt=spec.dt, observe=observe)
    assert run.states is not None
    return {"states": np.asarray(run.states), **{name: np.asarray(seen) for name, seen in run.observed.items()}}


def token_errors(spec: "CommonNoiseDensity", n: int, density: Arrays) -> Arrays:
    """Largest distances over the recorded times of n tokens to the density `(path,)`, and the tokens' angles `(t, n)`.

    Tokens are drawn from the density at t = 0, on every path others; angles are those of the first path.
    """
    flow, first, basis = density_flow(spec), start(spec), _basis(spec)
    tokens = CommonNoiseFlow(flow.flow.flow, flow.field)
    # as many as ever needed, so that this is compiled once
    x0 = jnp.stack([basis.sample(fold(spec.seed, TOKENS, n, path), first, max(spec.n)) for path in range(spec.paths)])
    options = {"dt": spec.dt, "observe": {"energy": Energy()}, "in_axes": (None, 0)}
    run = solve_ensemble(tokens, x0[:, :n], _times(spec), _noises(spec), **options)
    assert run.states is not None
    errors = {
        "energy": np.abs(np.asarray(run.observed["energy"]) - density["energy"]),
        "moments": np.asarray(_moment_errors(basis, run.states, jnp.asarray(density["states"]))),
    }
    x = np.asarray(run.states[0])
    return {name: error.max(axis=1) for name, error in errors.items()} | {"angle": np.arctan2(x[..., 1], x[..., 0])}


@eqx.filter_jit
def _moment_errors(
    basis: FourierModes, x: Float[Array, "path t n d"], coefficients: Float[Array, "path t k"]
) -> Float[Array, "path t"]:
    """Root mean square error of the moments of low degree."""
    low = np.flatnonzero((basis.degrees > 0) & (basis.degrees <= LOW))
    empirical = jax.vmap(jax.vmap(basis.empirical))(x)
    return jnp.sqrt(jnp.mean((empirical - coefficients)[..., low] ** 2, axis=-1))


def density_flow(spec: "CommonNoiseDensity") -> CommonNoiseDensityFlow:
    """The density's flow, whose `flow.flow` is that of tokens without noise."""
    quiet = DensityFlow(attention_of(2, spec.beta, float(spec.attention)), _basis(spec))
    return CommonNoiseDensityFlow(quiet, _field(spec))


def noise_variance(spec: "CommonNoiseDensity") -> float:
    """k(1) of the field, which leaves out the higher degrees of its kernel."""
    field = _field(spec)
    return float(field.kernel(1.0) - field.error)


def density_at(
    spec: "CommonNoiseDensity", states: Float[np.ndarray, "t k"], angle: Float[np.ndarray, "a"]
) -> np.ndarray:
    """The density of these coefficients at these angles `(t, a)`."""
    points = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    return states @ np.asarray(_basis(spec)(points)).T


def start(spec: "CommonNoiseDensity") -> Float[Array, "k"]:
    """The coefficients of exp(strength·(x_1 + x_1 x_2)), of mass 1."""
    basis = _basis(spec)
    x = basis.nodes.astype(spec.dtype)
    coefficients = basis.coefficients(jnp.exp(spec.strength * (x[:, 0] + x[:, 0] * x[:, 1])))
    return coefficients / coefficients[0]


def _basis(spec: "CommonNoiseDensity") -> FourierModes:
    # density, field and gradient: their product is integrated exactly
    return FourierModes(spec.degree, exactness=max(3 * spec.degree, 2 * spec.degree + spec.field_degree + 1))


def _field(spec: "CommonNoiseDensity") -> GaussianField:
    return GaussianField(kernel_of(spec.activation, 2, spec.bias), Harmonics(spec.field_degree))


def _times(spec: "CommonNoiseDensity") -> np.ndarray:
    return np.linspace(0.0, spec.T, spec.records)


def _noises(spec: "CommonNoiseDensity") -> Shaped[Array, "path"]:
    """A key for every path: the noise is drawn on the steps, for the density and for any number of tokens the same."""
    return jnp.stack([fold(spec.seed, NOISE, path) for path in range(spec.paths)])
