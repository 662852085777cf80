"""The flow of tokens under multi-head attention."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import refuse_other_type
from .._types import ScalarLike, Tokens
from ..geometry import AbstractManifold
from ..models import (
    AbstractBackend,
    AbstractHeads,
    AbstractKind,
    AbstractMask,
    Measure,
    Padding,
    Softmax,
    apply_heads,
    queries,
)
from ..paths import AbstractPath, AbstractProcess
from ._heads_flow import AbstractHeadsFlow, as_weights, refuse_other_parts


class AttentionFlow(AbstractHeadsFlow):
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
        refuse_other_type(kind, "kind", AbstractKind, "a kind of attention such as Softmax()")
        refuse_other_parts(mask, backend)
        self.manifold = manifold
        self.weights = as_weights(weights, manifold)
        self.kind = kind
        self.mask = mask
        self.backend = backend

    def __call__(self, t: ScalarLike, x: Tokens) -> Tokens:
        return self.tangent(self.present(x), self.attention(t, x))

    def attention(self, t: ScalarLike, x: Tokens) -> Tokens:
        """(1/H) Σ_h V_h A_h(x_i) `(n, d)`, before its normal part is taken off: what a layer adds to its tokens."""
        measure = self.measure(x)
        return self._pull(t, measure.points, measure, self.mask)

    def field(self, t: ScalarLike, points: Tokens, measure: Measure) -> Tokens:
        """The velocity at the points, each of which attends to the whole measure."""
        if not isinstance(self.mask, Padding | None):
            raise ValueError(
                f"mask must be Padding or None for a field: {type(self.mask).__name__} orders the tokens, and a "
                "measure has no order."
            )
        return self.manifold.project(points, self._pull(t, points, measure, None))

    def averages(self, t: ScalarLike, x: Tokens) -> Float[Array, "h n d"]:
        """A_h(x_i) of every head, before the value matrices."""
        measure = self.measure(x)
        return self._averages(self.heads(t, x), measure.points, measure, self.mask)

    def _pull(self, t: ScalarLike, points: Tokens, measure: Measure, mask: AbstractMask | None) -> Tokens:
        heads = self.heads(t, points)
        return jnp.mean(apply_heads(heads.value, self._averages(heads, points, measure, mask)), axis=0)

    def _averages(
        self, heads: AbstractHeads, points: Tokens, measure: Measure, mask: AbstractMask | None
    ) -> Float[Array, "h n d"]:
        return self.kind(self.backend_for(heads, measure), queries(heads, points), measure, mask)
