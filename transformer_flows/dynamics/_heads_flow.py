"""What flows under attention heads share: their weights as heads at a time, and sums over the tokens."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import refuse_other_type
from .._types import ScalarLike, Tokens, Valid
from ..geometry import AbstractManifold
from ..models import (
    AbstractBackend,
    AbstractHeads,
    AbstractMask,
    Measure,
    TiedHeads,
    Tilt,
    apply_heads,
    choose_backend,
    queries,
)
from ..paths import AbstractPath, AbstractProcess, Constant
from ._flow import AbstractFlow


class AbstractHeadsFlow(AbstractFlow):
    """A flow of tokens `(n, d)` driven by attention heads, which have an interaction energy."""

    manifold: eqx.AbstractVar[AbstractManifold]
    weights: eqx.AbstractVar[AbstractPath | AbstractProcess]
    mask: eqx.AbstractVar[AbstractMask | None]
    backend: eqx.AbstractVar[AbstractBackend | None]

    @property
    def existing(self) -> Valid | None:
        """Which tokens there are `(n,)`; None: all."""
        return None if self.mask is None else self.mask.existing

    def heads(self, t: ScalarLike, x: Tokens) -> AbstractHeads:
        """The heads at time `t`, in the dtype of the tokens `(n, d)`.

        Raises `ValueError` for no tokens, tokens or heads of another dimension, and a path of something else.
        """
        d = self.manifold.d
        if x.ndim != 2 or x.shape[0] == 0 or x.shape[1] != d:
            raise ValueError(f"tokens must have shape (n, {d}) with n >= 1; got {x.shape}.")
        heads = self.path(t)
        if not isinstance(heads, AbstractHeads):
            raise ValueError(f"the weights must be a path of Heads; its values are {type(heads).__name__}.")
        if heads.score.shape[-1] != d:
            raise ValueError(f"the weights are heads in R^{heads.score.shape[-1]}, but the tokens are in R^{d}.")
        return jax.tree.map(lambda leaf: leaf.astype(x.dtype), heads)

    @property
    def path(self) -> AbstractPath:
        """The weights as a path. Raises `ValueError` while they are a process that is not drawn."""
        if isinstance(self.weights, AbstractProcess):
            raise ValueError(f"the weights are a {type(self.weights).__name__} not drawn yet: realise(flow, key, ts).")
        return self.weights

    def measure(self, x: Tokens) -> Measure:
        """The empirical measure μ of the tokens."""
        return Measure(self.present(x), mask=self.existing)

    def tilt(self, heads: AbstractHeads, x: Tokens, values: Float[Array, "n v"]) -> Tilt:
        """The tilted sums of `values` under `heads` at the tokens, over the whole measure (no causal mask)."""
        measure = self.measure(x)
        x = measure.points
        log_mass, mean = self.backend_for(heads, x)(queries(heads, x), measure, values)
        return Tilt(log_mass, mean, self._token_weights(x))

    def backend_for(self, heads: AbstractHeads, x: Tokens) -> AbstractBackend:
        """The backend in use for these shapes."""
        h, d, _ = heads.score.shape
        return choose_backend(h=h, n=x.shape[0], d=d) if self.backend is None else self.backend

    def present(self, x: Tokens) -> Tokens:
        """Tokens with zeros in place of what padding holds, so that nothing there can overflow or be NaN."""
        if self.existing is None:
            return x
        if self.existing.shape != x.shape[:1]:
            raise ValueError(f"the padding mask has shape {self.existing.shape}, but there are {x.shape[0]} tokens.")
        return jnp.where(self.existing[:, None], x, 0)

    def _token_weights(self, x: Tokens) -> Float[Array, "n"]:
        exists = jnp.ones(x.shape[0], x.dtype) if self.existing is None else self.existing.astype(x.dtype)
        return exists / jnp.maximum(jnp.sum(exists), 1)

    def tangent(self, x: Tokens, velocity: Tokens) -> Tokens:
        """The tangent part of a velocity; zero for tokens that do not exist."""
        if self.existing is not None:
            velocity = jnp.where(self.existing[:, None], velocity, 0)
        return self.manifold.project(x, velocity)

    def energy_gradient(self, heads: AbstractHeads, x: Tokens, tilt: Tilt) -> Tokens:
        """∇(δE/δμ)(x_i) `(n, d)`, tangent: n times the Riemannian gradient of the energy at token i.

        Equal to (1/H) Σ_h m_h(x_i) P_x D_h ȳ_h(x_i) for symmetric scores, ȳ_h being the tilted mean of the tokens in
        `tilt`. A score that is not symmetric contributes half from each side: token i as the query and as a key.
        """
        gradient = _one_sided(jnp.swapaxes(heads.score, -1, -2), tilt)
        if not isinstance(heads, TiedHeads):
            mirrored = type(heads)(score=jnp.swapaxes(heads.score, -1, -2), value=heads.value)
            gradient = 0.5 * (gradient + _one_sided(heads.score, self.tilt(mirrored, x, x)))
        return self.manifold.project(self.present(x), gradient)


def as_weights(
    weights: AbstractHeads | AbstractPath | AbstractProcess, manifold: AbstractManifold
) -> AbstractPath | AbstractProcess:
    """Heads as a path that does not move; paths and processes as they are. Raises `ValueError` for anything else."""
    refuse_other_type(manifold, "manifold", AbstractManifold, "a space such as Sphere(3)")
    if not isinstance(weights, AbstractHeads | AbstractPath | AbstractProcess):
        raise ValueError(
            f"weights must be Heads, a path of heads or a process of heads; got {type(weights).__name__}. "
            "Wrap matrices: Heads(score, value) or Heads.tied(D, sign=-1)."
        )
    if not isinstance(weights, AbstractHeads):
        return weights
    if weights.score.shape[-1] != manifold.d:
        raise ValueError(
            f"heads and manifold must have one dimension; got heads in R^{weights.score.shape[-1]} and "
            f"{type(manifold).__name__}({manifold.d})."
        )
    return Constant(weights)


def refuse_other_parts(mask: AbstractMask | None, backend: AbstractBackend | None) -> None:
    """Raise `ValueError` unless the two are a mask and a backend, or None."""
    refuse_other_type(mask, "mask", AbstractMask | None, "a mask such as Causal(), or None")
    refuse_other_type(backend, "backend", AbstractBackend | None, "a backend such as Blockwise(), or None")


def _one_sided(matrices: Float[Array, "h d d"], tilt: Tilt) -> Tokens:
    return jnp.mean(tilt.mobility[..., None] * apply_heads(matrices, tilt.mean), axis=0)
