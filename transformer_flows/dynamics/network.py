"""A transformer of finitely many layers: attention, a random MLP, and the normalisations between them."""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete, refuse_other_count, refuse_other_type
from .._types import Key, Scalar, ScalarLike, Tokens, as_float
from ..geometry import AbstractManifold
from ..models import RandomMLP
from ..paths import AbstractProcess, Constant, RandomHeads
from .attention import AttentionFlow

Move = Callable[[Tokens], Tokens]

# The heads of layer ℓ come from the key folded with this and ℓ, the MLP of layer ℓ from the key folded with ℓ.
_OF_HEADS = 2**32 - 1


class AbstractBlock(eqx.Module):
    """Where a layer normalises."""

    @abstractmethod
    def __call__(self, manifold: AbstractManifold, x: Tokens, attention: Move, mlp: Move) -> Tokens:
        """Tokens after the layer; the two moves are the layer's steps, already scaled."""


class TwoNorms(AbstractBlock):
    """y = N(x + attention(x)), x⁺ = N(y + mlp(y)) with N the nearest point of the manifold."""

    def __call__(self, manifold, x, attention, mlp):
        y = manifold.retract(x + attention(x))
        return manifold.retract(y + mlp(y))


class OneNorm(AbstractBlock):
    """x⁺ = N(x + attention(x) + mlp(x)): the same to leading order in the number of layers."""

    def __call__(self, manifold, x, attention, mlp):
        return manifold.retract(x + attention(x) + mlp(x))


class Network(eqx.Module):
    """`layers` layers over the depth `horizon` T: attention times T/L, and a fresh random MLP times √(T/L).

    `flow` is the attention (its heads hold sign and temperature; values of 0 switch it off), `mlp` the law of the MLPs
    (None: none). `block` says where a layer normalises. Run by `run_layers`.

    Weights of the flow that are `RandomHeads` are drawn afresh for every layer. Values of mean 0 then add up like
    noise: with a variance of σ²L/T, and scores that do not vary, many layers tend to `ValueNoiseFlow`. Observables that
    need heads, such as energies, have none to see in a run: call them on recorded states with `flow_of(key, layer)`.

    Raises `ValueError` for no layers, a horizon that is not positive, weights that are another
    process, and parts in other dimensions. Source: arXiv:2604.26898, its discrete model.
    """

    flow: AttentionFlow
    mlp: RandomMLP | None
    block: AbstractBlock
    horizon: Scalar
    layers: int = eqx.field(static=True)

    def __init__(
        self,
        flow: AttentionFlow,
        mlp: RandomMLP | None,
        *,
        layers: int,
        horizon: ArrayLike,
        block: AbstractBlock = TwoNorms(),
    ):
        refuse_other_type(flow, "flow", AttentionFlow, "an AttentionFlow")
        refuse_other_type(mlp, "mlp", RandomMLP | None, "a RandomMLP, or None")
        refuse_other_type(block, "block", AbstractBlock, "TwoNorms() or OneNorm()")
        refuse_other_count(layers, "layers", 1)
        value = concrete(horizon)
        if value is not None and not (value.ndim == 0 and 0 < value < jnp.inf):
            raise ValueError(f"horizon must be one positive finite depth; got {horizon!r}.")
        if mlp is not None and mlp.kernel.d != flow.manifold.d:
            raise ValueError(f"the tokens of flow are in R^{flow.manifold.d}, those of mlp in R^{mlp.kernel.d}.")
        if isinstance(flow.weights, AbstractProcess) and not isinstance(flow.weights, RandomHeads):
            raise ValueError(
                f"the weights of flow are a {type(flow.weights).__name__} not drawn yet: realise(flow, key, ts). Only "
                "RandomHeads are drawn for every layer."
            )
        self.flow, self.mlp, self.block = flow, mlp, block
        self.horizon = as_float(horizon)
        self.layers = layers

    @property
    def step(self) -> Scalar:
        """The depth T/L of a layer."""
        return self.horizon / self.layers

    def depth(self, layer: ArrayLike) -> Float[Array, "..."]:
        """The depth at which a layer begins."""
        return self.step * jnp.asarray(layer)

    def flow_of(self, key: Key, layer: ScalarLike) -> AttentionFlow:
        """The attention of layer number `layer`, with its own heads where they are random."""
        if not isinstance(self.flow.weights, RandomHeads):
            return self.flow
        heads = self.flow.weights.draw(jr.fold_in(jr.fold_in(key, _OF_HEADS), layer))
        return eqx.tree_at(lambda flow: flow.weights, self.flow, Constant(heads))

    def __call__(self, key: Key, layer: ScalarLike, x: Tokens) -> Tokens:
        """Tokens `(n, d)` after layer number `layer`, whose weights depend on the key and that number alone."""
        step = self.step.astype(x.dtype)
        t, flow = self.depth(layer), self.flow_of(key, layer)

        def attention(y: Tokens) -> Tokens:
            return step * flow.attention(t, y)

        def mlp(y: Tokens) -> Tokens:
            if self.mlp is None:
                return jnp.zeros_like(y)
            return jnp.sqrt(step) * self.mlp(jr.fold_in(key, layer), y)

        new = self.block(self.flow.manifold, x, attention, mlp)
        existing = self.flow.existing
        return new if existing is None else jnp.where(existing[:, None], new, x)
