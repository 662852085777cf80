"""Networks of finite depth and width on one path of the Gaussian field, and the flow that they tend to."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from .._types import Key, Scalar, Tokens
from ..dynamics import AttentionFlow, CommonNoiseFlow
from ..geometry import Sphere
from ..integrate import solve_ensemble
from ..models import GaussianField, Harmonics
from ..paths import BrownianPath, realise
from ..theory import ActivationKernel
from .random_layers import ACTIVATIONS, attention_of, seeds
from .unit import Arrays

if TYPE_CHECKING:
    from .network_limit import NetworkLimit

DEGREES = {2: 24, 3: 10}


def follow_flow(spec: "NetworkLimit") -> Arrays:
    """The flow on every noise path, at the depths of the most layers `(draw, t, n, d)`."""
    depths = np.linspace(0.0, spec.T, max(*spec.depths, spec.layers) + 1)
    keys = seeds(spec.seed, spec.draws)
    states = solve_ensemble(_flow(spec), _start(spec), depths, keys, dt=spec.T / spec.finest).states
    return {"states": np.asarray(states)}


def follow_network(spec: "NetworkLimit", layers: int, width: int | None) -> Arrays:
    """The same for the network with so many layers, of so many hidden units or (None) of the field itself."""
    keys = seeds(spec.seed, spec.draws)
    sizes = {"finest": spec.finest, "layers": layers, "most": max(spec.widths)}
    width_or_none = None if width is None else jnp.asarray(width)
    states = _network(_flow(spec), _start(spec), keys, width_or_none, T=spec.T, **sizes)
    return {"states": np.asarray(states)}


def worst(x: Arrays, y: Arrays) -> Float[np.ndarray, "e"]:
    """sup over the depths that both have of the mean squared distance, for every draw."""
    first, second = x["states"], y["states"]
    if first.shape[1] > second.shape[1]:
        first, second = second, first
    stride = (second.shape[1] - 1) // (first.shape[1] - 1)
    return np.max(np.mean(np.sum((first - second[:, ::stride]) ** 2, axis=-1), axis=-1), axis=-1)


def one_layer_errors(spec: "NetworkLimit") -> Arrays:
    """E|K̂^{1/2}ξ − K^{1/2}ξ|²/n per coordinate at the starting tokens, for every width and draw of the hidden units."""
    field, x0 = _flow(spec).field, _start(spec)
    assert isinstance(field, GaussianField)
    root = _power(_gram(field, x0), 0.5)

    @jax.jit
    def errors(width: Int[Array, ""]) -> Float[Array, "e"]:
        def one(key: Key) -> Scalar:
            finite = _power(hidden_covariance(field.kernel, key, x0, width, max(spec.widths)), 0.5)
            return jnp.sum((finite - root) ** 2) / len(x0)

        return jax.lax.map(one, seeds(spec.seed, spec.draws))

    return {f"m{m}": np.asarray(errors(jnp.asarray(m))) for m in spec.widths}


def hidden_covariance(
    kernel: ActivationKernel, key: Key, x: Tokens, width: Int[Array, ""], most: int
) -> Float[Array, "n n"]:
    """K̂ = ΦΦᵀ/m + σ_c² 11ᵀ with m hidden units Φ `(n, m)`: the covariance of a random MLP's output given those.

    `most` are drawn and the first m of them counted, so that all widths are one program.
    """
    of_inner, of_hidden = jr.split(key)
    score = jnp.matmul(x, jnp.sqrt(kernel.weight) * jr.normal(of_inner, (kernel.d, most)), precision="highest")
    units = kernel.activation(score + jnp.sqrt(kernel.hidden_bias) * jr.normal(of_hidden, (1, most)))
    units = jnp.where(jnp.arange(most)[None] < width, units, 0)
    return jnp.matmul(units, units.T, precision="highest") / width + kernel.output_bias


def _flow(spec: "NetworkLimit") -> CommonNoiseFlow:
    kernel = ActivationKernel(ACTIVATIONS[spec.activation], spec.d, spec.weight, spec.bias**2, spec.bias**2)
    return CommonNoiseFlow(attention_of(spec.d, spec.beta, 1.0), GaussianField(kernel, Harmonics(DEGREES[spec.d])))


def _start(spec: "NetworkLimit") -> Tokens:
    """Tokens that are well apart: the best of many uniform clouds, since roots of covariances feel close tokens."""
    clouds = jax.vmap(lambda key: Sphere(spec.d).uniform(key, spec.n))(jr.split(jr.key(spec.seed + 1), 256))
    nearest = jnp.max(jnp.einsum("cnd,cmd->cnm", clouds, clouds) - 2 * jnp.eye(spec.n)[None], axis=(1, 2))
    return clouds[jnp.argmin(nearest)].astype(spec.dtype)


@eqx.filter_jit
def _network(
    flow: CommonNoiseFlow,
    x0: Tokens,
    keys: Array,
    width: Int[Array, ""] | None,
    *,
    T: float,
    finest: int,
    layers: int,
    most: int,
) -> Float[Array, "e t n d"]:
    """Tokens before and after every layer, for every key: the noise is that of `solve_ensemble` with the same keys."""
    with jax.ensure_compile_time_eval():
        knots = jnp.linspace(0.0, T, finest + 1)
    field, attention = flow.prepared().field, flow.flow
    assert isinstance(field, GaussianField) and isinstance(attention, AttentionFlow)

    def draw(key: Key) -> Float[Array, "t n d"]:
        noise = realise(flow, key, knots).noise
        assert isinstance(noise, BrownianPath)
        increments = jnp.diff(noise.values[:: finest // layers], axis=0)

        def layer(x: Tokens, now: tuple[Array, Array]) -> tuple[Tokens, Tokens]:
            number, dw = now
            y = flow.manifold.retract(x + T / layers * attention.attention(0.0, x))
            moved = field(y, dw)
            if width is not None:
                moved = _of_width(field, jr.fold_in(key, number), y, width, most) @ moved
            new = flow.manifold.retract(y + moved)
            return new, new

        _, states = jax.lax.scan(layer, x0, (jnp.arange(layers), increments))
        return jnp.concatenate([x0[None], states])

    return jax.lax.map(draw, keys)


def _of_width(field: GaussianField, key: Key, x: Tokens, width: Int[Array, ""], most: int) -> Float[Array, "n n"]:
    """K̂^{1/2} K^{-1/2}, which turns increments of the field into those of a random MLP with these hidden units."""
    finite = _power(hidden_covariance(field.kernel, key, x, width, most), 0.5)
    return jnp.matmul(finite, _power(_gram(field, x), -0.5), precision="highest")


def _gram(field: GaussianField, x: Tokens) -> Float[Array, "n n"]:
    factor = field.factor(x)
    return jnp.matmul(factor, factor.T, precision="highest")


def _power(square: Float[Array, "n n"], exponent: float) -> Float[Array, "n n"]:
    """The symmetric power of a positive matrix; directions that only rounding gives it are left out."""
    values, vectors = jnp.linalg.eigh(square)
    there = values > 1e-10 * values[-1]
    powers = jnp.where(there, jnp.where(there, values, 1) ** exponent, 0)
    return jnp.matmul(vectors * powers[None], vectors.T, precision="highest")
