"""The exact gradient flow of the interaction energy in the weighted Wasserstein geometry."""

import jax
import jax.numpy as jnp

from .._types import ScalarLike, Tokens
from ..geometry import AbstractManifold
from ..models import (
    AbstractBackend,
    AbstractHeads,
    AbstractMask,
    Measure,
    Padding,
    TiedHeads,
    apply_heads,
    log_harmonic_mean,
    queries,
    times_exp,
)
from ..paths import AbstractPath, AbstractProcess
from ._heads_flow import AbstractHeadsFlow, as_weights, refuse_other_parts, refuse_untied


class MobilityFlow(AbstractHeadsFlow):
    """Tokens along the gradient of the energy in W_{m,2}: x_i' = ±∇(δE/δμ)(x_i)/b̂(x_i).

    b̂ is the effective mobility, the harmonic mean of the heads' mobilities, and the sign that of the tied heads: -1
    descends the energy, +1 ascends it. Flow 2 of the gradient-flow picture of arXiv:2605.18870; with one head it is
    `AttentionFlow`. Its squared speed `Slope` and the energy's squared slope `EnergySlope` are equal, so the
    energy-dissipation identity holds for any number of heads. Called as `flow(t, x)` with tokens `(n, d)`.

    `weights` are tied heads, a path or a process of them. A mask says only which tokens exist: a causal one, under
    which attention is no gradient, is refused with `ValueError`, and so are heads that are not tied: at once, but for a
    path that is a user's function, at the first call.

    A velocity is known to the rounding of the largest head's pull m_h D_h ȳ_h/b̂, of which only the tangent part moves
    the token. Where it is larger than any float it is ±inf, never NaN.
    """

    manifold: AbstractManifold
    weights: AbstractPath | AbstractProcess
    mask: AbstractMask | None
    backend: AbstractBackend | None

    def __init__(
        self,
        manifold: AbstractManifold,
        weights: AbstractHeads | AbstractPath | AbstractProcess,
        mask: AbstractMask | None = None,
        backend: AbstractBackend | None = None,
    ):
        refuse_other_parts(mask, backend)
        if mask is not None and not isinstance(mask, Padding):
            raise ValueError(f"mask must be Padding or None: under {type(mask).__name__} attention is no gradient.")
        self.manifold = manifold
        self.weights = as_weights(weights, manifold)
        self.mask = mask
        self.backend = backend

    def __check_init__(self):
        is_heads = lambda part: isinstance(part, AbstractHeads)
        for part in jax.tree.leaves(self.weights, is_leaf=is_heads):
            if is_heads(part):
                refuse_untied(part, type(self).__name__)

    def __call__(self, t: ScalarLike, x: Tokens) -> Tokens:
        measure = self.measure(x)
        velocity = self.field(t, measure.points, measure)
        return velocity if self.existing is None else jnp.where(self.existing[:, None], velocity, 0)

    def field(self, t: ScalarLike, points: Tokens, measure: Measure) -> Tokens:
        """±∇(δE/δμ)/b̂ of the measure at the points."""
        heads = self.heads(t, points)
        refuse_untied(heads, "MobilityFlow")
        assert isinstance(heads, TiedHeads)
        log_mass, mean = self.backend_for(heads, measure)(queries(heads, points), measure, measure.points)
        # m_h/b̂ over the largest: mobilities overflow where their ratios do not, and these where velocities do not
        log_share = log_mass - log_harmonic_mean(log_mass)[None]
        largest = jax.lax.stop_gradient(jnp.max(log_share, axis=0))
        share = jnp.exp(log_share - largest[None])
        relative = self.manifold.project(points, jnp.mean(share[..., None] * apply_heads(heads.D, mean), axis=0))
        return heads.sign * times_exp(relative, largest[:, None])
