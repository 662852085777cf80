"""The flow of tokens under multi-head attention."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import refuse_other_type
from .._types import ScalarLike, Tokens, Valid
from ..geometry import AbstractManifold
from ..models import (
    AbstractBackend,
    AbstractHeads,
    AbstractKind,
    AbstractMask,
    Measure,
    Softmax,
    Tilt,
    apply_heads,
    choose_backend,
    queries,
)
from ..paths import AbstractPath, AbstractProcess, Constant
from ._flow import AbstractFlow


class AttentionFlow(AbstractFlow):
    """Tokens under head-averaged attention: x_i' = P_{x_i} (1/H) Σ_h V_h A_h(x_i).

    A_h is the head's average of the tokens as given by `kind`; for `Softmax` it is
    Σ_j x_j e^{⟨B_h x_i, x_j⟩} / Σ_j e^{⟨B_h x_i, x_j⟩}. Called as `flow(t, x)` with tokens `(n, d)`; returns `(n, d)`.

    `weights` are heads, a path of heads, or a process of heads (to be drawn by `realise` before a solve). `backend`
    None chooses by size and platform. With tied heads this is flow 1 of arXiv:2605.18870 (their equation for the
    tokens): `sign=-1` descends the interaction energy.
    """

    manifold: AbstractManifold
    weights: AbstractPath | AbstractProcess
    kind: AbstractKind
    mask: AbstractMask | None
    backend: AbstractBackend | None

    def __init__(
        self,
        manifold: AbstractManifold,
        weights: AbstractHeads | AbstractPath | AbstractProcess,
        kind: AbstractKind = Softmax(),
        mask: AbstractMask | None = None,
        backend: AbstractBackend | None = None,
    ):
        refuse_other_type(manifold, "manifold", AbstractManifold, "a space such as Sphere(3)")
        refuse_other_type(kind, "kind", AbstractKind, "a kind of attention such as Softmax()")
        refuse_other_type(mask, "mask", AbstractMask | None, "a mask such as Causal(), or None")
        refuse_other_type(backend, "backend", AbstractBackend | None, "a backend such as Blockwise(), or None")
        if not isinstance(weights, AbstractHeads | AbstractPath | AbstractProcess):
            raise ValueError(
                f"weights must be Heads, a path of heads or a process of heads; got {type(weights).__name__}. "
                "Wrap matrices: Heads(score, value) or Heads.tied(D, sign=-1)."
            )
        if isinstance(weights, AbstractHeads) and weights.score.shape[-1] != manifold.d:
            raise ValueError(
                f"heads and manifold must have one dimension; got heads in R^{weights.score.shape[-1]} and "
                f"{type(manifold).__name__}({manifold.d})."
            )
        self.manifold = manifold
        self.weights = Constant(weights) if isinstance(weights, AbstractHeads) else weights
        self.kind = kind
        self.mask = mask
        self.backend = backend

    def __call__(self, t: ScalarLike, x: Tokens) -> Tokens:
        x = self._present(x)
        heads = self.heads(t, x)
        average = self.kind(self.backend_for(heads, x), queries(heads, x), self.measure(x), self.mask)
        velocity = jnp.mean(apply_heads(heads.value, average), axis=0)
        if self.existing is not None:
            velocity = jnp.where(self.existing[:, None], velocity, 0)
        return self.manifold.project(x, velocity)

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
        return Measure(self._present(x), mask=self.existing)

    def tilt(self, heads: AbstractHeads, x: Tokens, values: Float[Array, "n v"]) -> Tilt:
        """The tilted sums of `values` under `heads` at the tokens, over the whole measure (no causal mask)."""
        x = self._present(x)
        log_mass, mean = self.backend_for(heads, x)(queries(heads, x), self.measure(x), values)
        return Tilt(log_mass, mean, self._token_weights(x))

    def backend_for(self, heads: AbstractHeads, x: Tokens) -> AbstractBackend:
        """The backend in use for these shapes."""
        h, d, _ = heads.score.shape
        return choose_backend(h=h, n=x.shape[0], d=d) if self.backend is None else self.backend

    def _present(self, x: Tokens) -> Tokens:
        """Tokens with zeros in place of what padding holds, so that nothing there can overflow or be NaN."""
        if self.existing is None:
            return x
        if self.existing.shape != x.shape[:1]:
            raise ValueError(f"the padding mask has shape {self.existing.shape}, but there are {x.shape[0]} tokens.")
        return jnp.where(self.existing[:, None], x, 0)

    def _token_weights(self, x: Tokens) -> Float[Array, "n"]:
        exists = jnp.ones(x.shape[0], x.dtype) if self.existing is None else self.existing.astype(x.dtype)
        return exists / jnp.maximum(jnp.sum(exists), 1)
