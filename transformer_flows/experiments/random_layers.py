"""Transformers with random MLPs as the experiments use them: activations by name, all draws side by side."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Shaped

from .._types import Scalar
from ..dynamics import AttentionFlow, Network
from ..geometry import Sphere
from ..integrate import Solution, run_layers
from ..models import Heads, RandomMLP
from ..theory import ActivationKernel

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "erf": jax.scipy.special.erf,
    "identity": jax.nn.identity,
    "sin": jnp.sin,
    "cos": jnp.cos,
}


def kernel_of(activation: str, d: int, bias: float) -> ActivationKernel:
    """The kernel at the scales of arXiv:2604.26898: σ_u² = 1/d, and both biases of standard deviation `bias`."""
    return ActivationKernel(ACTIVATIONS[activation], d, 1 / d, bias**2, bias**2)


def mlp_of(activation: str, width: int, d: int, bias: float) -> RandomMLP:
    """The random MLP of that kernel."""
    return RandomMLP(width, ACTIVATIONS[activation], d, 1 / d, bias**2, bias**2)


def attention_of(d: int, beta: float, sign: float) -> AttentionFlow:
    """Attention with B = βI and V = `sign`·I; 0 switches it off."""
    identity = Heads.identity(d, beta=beta)
    return AttentionFlow(Sphere(d), eqx.tree_at(lambda heads: heads.value, identity, sign * identity.value))


def seeds(seed: int, draws: int) -> Shaped[Array, "e"]:
    """A key per draw; draw i depends on the seed and on i alone."""
    return jax.vmap(functools.partial(jr.fold_in, jr.key(seed)))(jnp.arange(draws))


@eqx.filter_jit
def run_draws(
    network: Network, keys: Shaped[Array, "e"], observe: dict[str, Callable], *, n: int, every: int, dtype: str
) -> Solution:
    """`n` uniform tokens through the network for every key, side by side: a leading axis of draws."""

    def draw(key: Array) -> Solution:
        of_start, of_layers = jr.split(key)
        x0 = network.flow.manifold.uniform(of_start, n).astype(dtype)
        return run_layers(network, x0, of_layers, record_every=every, observe=observe)

    return jax.vmap(draw)(keys)


def sde_number(kernel: ActivationKernel, step: float) -> Scalar:
    """(T/L)(d−1)k(1): the mean square of what a layer's noise does to a token. The limit of many layers needs ≪ 1."""
    return step * (kernel.d - 1) * kernel(1.0)
