"""A perceptron whose weights are drawn afresh for every layer."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import ArrayLike

from .._checks import refuse_other_count, refuse_other_keys
from .._types import Key, Tokens, as_float
from ..theory import ActivationKernel


class RandomMLP(eqx.Module):
    """G(y) = m^{-1/2} W φ(U y + b_U) + b_W with weights drawn from a key, the same for all tokens; m is `width`.

    W has standard normal entries; those of U, b_U and b_W have the variances `weight`, `hidden_bias` and `output_bias`,
    which with the activation φ and the dimension `d` are those of `ActivationKernel`: the covariance of G, for any
    width, is `kernel`. Called with a key and tokens `(n, d)`. Raises `ValueError` as `ActivationKernel` does, and for a
    width below 1. Source: arXiv:2604.26898, its random MLPs.
    """

    width: int = eqx.field(static=True)
    kernel: ActivationKernel

    def __init__(
        self,
        width: int,
        activation: Callable,
        d: int,
        weight: ArrayLike,
        hidden_bias: ArrayLike = 0.0,
        output_bias: ArrayLike = 0.0,
    ):
        refuse_other_count(width, "width", 1)
        self.width = width
        self.kernel = ActivationKernel(activation, d, weight, hidden_bias, output_bias)

    def __call__(self, key: Key, y: Tokens) -> Tokens:
        refuse_other_keys(key, "key", many=False)
        kernel, d, y = self.kernel, self.kernel.d, as_float(y)
        if y.ndim != 2 or y.shape[1] != d:
            raise ValueError(f"the MLP takes tokens of shape (n, {d}); got {y.shape}.")
        of_inner, of_hidden, of_outer, of_output = jr.split(key, 4)
        deviation = lambda variance: jnp.sqrt(variance).astype(y.dtype)
        inner = deviation(kernel.weight) * jr.normal(of_inner, (d, self.width), y.dtype)
        hidden = deviation(kernel.hidden_bias) * jr.normal(of_hidden, (1, self.width), y.dtype)
        outer = self.width**-0.5 * jr.normal(of_outer, (self.width, d), y.dtype)
        output = deviation(kernel.output_bias) * jr.normal(of_output, (1, d), y.dtype)
        features = kernel.activation(jnp.matmul(y, inner, precision="highest") + hidden)
        return jnp.matmul(features, outer, precision="highest") + output
