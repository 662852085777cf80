"""Where a transformer normalises: tokens as directions and lengths, and how fast each placement lets them move."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete, refuse_other_type
from .._types import Scalar, ScalarLike, Tokens, as_float
from ..geometry import Polar, PolarSpace, Sphere
from ._flow import AbstractFlow
from .attention import AttentionFlow


class AbstractPlacement(eqx.Module):
    """A speed s_k and a growth of the length, r_k', in x_k = r_k θ_k, θ_k' = P A_k/s_k, with A_k what attention adds.

    All are g A_k with a factor g: either the stream is normalised, and the length does not change, or the input of the
    layer alone is, and x_k' = g A_k in R^d. Near one cluster under heads of value I, |A_k| = 1 and directions approach
    their mean by the factor `contraction`, for any score: softmax weights are equal there but for the second order.
    """

    @abstractmethod
    def factor(self, t: ScalarLike, pull: Tokens) -> Float[Array, "n"]:
        """g for the attention A_k `(n, d)`."""

    @abstractmethod
    def depth(self, t: ScalarLike) -> Scalar:
        """G(t) = ∫_0^t g ds where |A_k| = 1."""

    @abstractmethod
    def velocity(self, t: ScalarLike, x: Polar, pull: Tokens) -> tuple[Tokens, Float[Array, "n"]]:
        """θ' before its normal part is taken off, and r'."""

    @abstractmethod
    def contraction(self, t: ScalarLike, radius: ArrayLike = 1.0) -> Scalar:
        """How much smaller distances on the sphere are at time `t` than at 0, near one cluster of length `radius`."""


class AbstractStreamNorm(AbstractPlacement):
    """The stream of tokens is normalised after every layer: θ' = g P A, r' = 0. Distances fall like e^{−G(t)}."""

    def velocity(self, t, x, pull):
        return self.factor(t, pull)[:, None] * pull, jnp.zeros_like(x.radius)

    def contraction(self, t, radius=1.0):
        return jnp.exp(-self.depth(t))


class AbstractInputNorm(AbstractPlacement):
    """The input of every layer is normalised: θ' = g P A/r, r' = g⟨θ, A⟩. Distances fall like r_0/(r_0 + G(t)).

    Lengths grow as tokens agree, so that what a layer adds turns them less and less.
    """

    def velocity(self, t, x, pull):
        moved = self.factor(t, pull)[:, None] * pull
        return moved / x.radius[:, None], jnp.sum(moved * x.theta, axis=-1)

    def contraction(self, t, radius=1.0):
        radius = as_float(radius)
        return radius / (radius + self.depth(t))


class PostNorm(AbstractStreamNorm):
    """Post-LN: s = 1, r' = 0, tokens on the sphere. Near one cluster 1 − cos falls like e^{−2t}."""

    def factor(self, t, pull):
        return jnp.ones_like(pull[:, 0])

    def depth(self, t):
        return as_float(t)


class SqrtPostNorm(AbstractStreamNorm):
    """Post-LN with the layers scaled down: s = √(t+1), r' = 0. Near one cluster 1 − cos falls like e^{−4√(t+1)}."""

    def factor(self, t, pull):
        return _slowed(t, pull)

    def depth(self, t):
        return _slowed_depth(t)


class NGPT(AbstractStreamNorm):
    """nGPT: what attention adds is normalised too, s = |A|/α, r' = 0. Near one cluster 1 − cos falls like e^{−2αt}.

    Raises `ValueError` for an α that is not positive and finite.
    """

    alpha: Scalar

    def __init__(self, alpha: ArrayLike = 1.0):
        value = concrete(alpha)
        if value is not None and not (value.ndim == 0 and 0 < value < jnp.inf):
            raise ValueError(f"alpha must be one positive finite number; got {alpha!r}.")
        self.alpha = as_float(alpha)

    def factor(self, t, pull):
        return self.alpha.astype(pull.dtype) * _inverse_length(pull)

    def depth(self, t):
        return self.alpha * t


class PreNorm(AbstractInputNorm):
    """Pre-LN: s = r, r' = ⟨θ, A⟩, that is x' = A in R^d. Near one cluster 1 − cos falls like t^{−2}."""

    def factor(self, t, pull):
        return jnp.ones_like(pull[:, 0])

    def depth(self, t):
        return as_float(t)


class PeriNorm(AbstractInputNorm):
    """Peri-LN, on both sides of a layer: s = r|A|, r' = ⟨θ, A⟩/|A|. Near one cluster 1 − cos falls like t^{−2}."""

    def factor(self, t, pull):
        return _inverse_length(pull)

    def depth(self, t):
        return as_float(t)


class LNScaling(AbstractInputNorm):
    """LN-Scaling: s = r√(t+1), r' = ⟨θ, A⟩/√(t+1). Near one cluster 1 − cos falls like 1/t."""

    def factor(self, t, pull):
        return _slowed(t, pull)

    def depth(self, t):
        return _slowed_depth(t)


class NormalisedFlow(AbstractFlow):
    """Tokens x_k = r_k θ_k that attend by their directions θ, under a placement of the normalisation.

    θ_k' = P A_k/s_k and r_k' as `placement` says, A_k being the attention of `flow` at the directions, before its
    normal part is taken off. Start from `manifold.state(directions, lengths)`, a `Polar`. A length that reaches 0, as
    under repulsion it may, ends the solve with status `non_finite`: the token has no direction there.

    Raises `ValueError` for parts of other types, and a flow that is not on a sphere. Source: arXiv:2510.22026, its
    table of speeds.
    """

    flow: AttentionFlow
    placement: AbstractPlacement

    def __init__(self, flow: AttentionFlow, placement: AbstractPlacement):
        refuse_other_type(flow, "flow", AttentionFlow, "an AttentionFlow")
        refuse_other_type(placement, "placement", AbstractPlacement, "a placement such as PreNorm()")
        if not isinstance(flow.manifold, Sphere):
            raise ValueError(f"flow must move on a sphere; got one on {flow.manifold}.")
        self.flow = flow
        self.placement = placement

    @property
    def manifold(self) -> PolarSpace:
        assert isinstance(self.flow.manifold, Sphere)  # as checked
        return PolarSpace(self.flow.manifold)

    def __call__(self, t: ScalarLike, x: Polar) -> Polar:
        theta, growth = self.placement.velocity(t, x, self.flow.attention(t, x.theta))
        existing = self.flow.existing
        growth = growth if existing is None else jnp.where(existing, growth, 0)
        return Polar(self.flow.tangent(x.theta, theta), growth)


def _slowed(t: ScalarLike, pull: Tokens) -> Float[Array, "n"]:
    """1/√(t+1), for every token."""
    return jnp.broadcast_to(1 / jnp.sqrt(as_float(t) + 1), pull.shape[:1]).astype(pull.dtype)


def _slowed_depth(t: ScalarLike) -> Scalar:
    return 2 * (jnp.sqrt(as_float(t) + 1) - 1)


def _inverse_length(pull: Tokens) -> Float[Array, "n"]:
    """1/|A|; 0 where A = 0, which has no direction."""
    square = jnp.sum(pull * pull, axis=-1)
    positive = square > 0
    return jnp.where(positive, 1 / jnp.sqrt(jnp.where(positive, square, 1)), 0)
