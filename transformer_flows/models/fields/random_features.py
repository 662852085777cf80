"""Modes on spheres of any dimension and for any kernel: hidden units drawn once."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from ..._checks import refuse_other_count, refuse_other_keys
from ..._types import Key, Scalar
from ...theory import ActivationKernel
from ._realisation import AbstractFactor, AbstractRealisation, isotropic_drift


class RandomFeatures(AbstractRealisation):
    """`count` hidden units φ(⟨u_k, x⟩ + b_k)/√count of the random MLP, drawn from `key`, and the constant σ_c.

    A field with frozen hidden weights: isotropic, and with the kernel of the limit, on average over the key only; the
    error falls like count^{-1/2}. Raises `ValueError` for fewer than one unit and kernels of another dimension.
    """

    depends_smoothly: ClassVar[bool] = True
    inner: Float[Array, "d k"]
    hidden: Float[Array, "1 k"]

    def __init__(self, key: Key, d: int, count: int):
        refuse_other_keys(key, "key", many=False)
        refuse_other_count(d, "d", 2)
        refuse_other_count(count, "count", 1)
        of_inner, of_hidden = jr.split(key)
        self.inner = jr.normal(of_inner, (d, count))
        self.hidden = jr.normal(of_hidden, (1, count))

    def size(self, kernel: ActivationKernel) -> int:
        d, count = self.inner.shape
        if kernel.d != d:
            raise ValueError(f"the features are for d = {d}, but the kernel has d = {kernel.d}.")
        return count + 1

    def factor(self, kernel):
        deviation = lambda variance: jnp.sqrt(variance).astype(self.inner.dtype)
        return _UnitsFactor(
            kernel.activation,
            deviation(kernel.weight) * self.inner,
            deviation(kernel.hidden_bias) * self.hidden,
            deviation(kernel.output_bias),
        )

    def error(self, kernel):
        """At equal tokens, from the units at one token."""
        one_token = jnp.zeros((1, kernel.d), self.inner.dtype).at[0, 0].set(1)
        count = self.inner.shape[1]
        return jnp.std(count * self.factor(kernel)(one_token)[0, :-1] ** 2) / count**0.5


class _UnitsFactor(AbstractFactor):
    activation: Callable = eqx.field(static=True)
    inner: Float[Array, "d k"]
    hidden: Float[Array, "1 k"]
    constant: Scalar

    def __call__(self, x):
        score = jnp.matmul(x, self.inner.astype(x.dtype), precision="highest") + self.hidden.astype(x.dtype)
        units = self.activation(score) / self.inner.shape[1] ** 0.5
        constant = jnp.broadcast_to(self.constant.astype(x.dtype), (x.shape[0], 1))
        return jnp.concatenate([units, constant], axis=1)

    def ito_drift(self, x):
        """−½(d−1)κ(x)x + ¼P∇κ(x) with κ(x) = |F(x)|², which is not the same everywhere."""

        def own_variance(token: Float[Array, "d"]) -> Scalar:
            return jnp.sum(self(token[None]) ** 2)

        kappa, slope = jax.vmap(jax.value_and_grad(own_variance))(x)
        tangent = slope - jnp.sum(slope * x, axis=1, keepdims=True) * x
        return isotropic_drift(x, kappa[:, None]) + tangent / 4
