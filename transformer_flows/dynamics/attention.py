"""The flow of tokens under multi-head attention."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

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
        """The heads at time `t`, in the dtype of the tokens."""
        return jax.tree.map(lambda leaf: leaf.astype(x.dtype), self.path(t))

    @property
    def path(self) -> AbstractPath:
        """The weights as a path. Raises `ValueError` while they are a process that is not drawn."""
        if isinstance(self.weights, AbstractProcess):
            raise ValueError(f"the weights are a {type(self.weights).__name__} not drawn yet: realise(flow, key, ts).")
        return self.weights

    def measure(self, x: Tokens) -> Measure:
        """The empirical measure μ of the tokens."""
        return Measure(x, mask=self.existing)

    def tilt(self, heads: AbstractHeads, x: Tokens, values: Float[Array, "n v"]) -> Tilt:
        """The tilted sums of `values` under `heads` at the tokens, over the whole measure (no causal mask)."""
        log_mass, mean = self.backend_for(heads, x)(queries(heads, x), self.measure(x), values)
        return Tilt(log_mass, mean, self._token_weights(x))

    def backend_for(self, heads: AbstractHeads, x: Tokens) -> AbstractBackend:
        """The backend in use for these shapes."""
        h, d, _ = heads.score.shape
        return choose_backend(h=h, n=x.shape[0], d=d) if self.backend is None else self.backend

    def _token_weights(self, x: Tokens) -> Float[Array, "n"]:
        exists = jnp.ones(x.shape[0], x.dtype) if self.existing is None else self.existing.astype(x.dtype)
        return exists / jnp.sum(exists)
