"""Linearised flows: tokens with tangent vectors that move by the derivative of the flow."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .._types import ScalarLike, Tokens
from ..geometry import AbstractManifold, Frame, FrameBundle
from ..paths import AbstractPath, AbstractProcess
from ._flow import AbstractFlow
from ._noisy_flow import AbstractNoisyFlow, AbstractStratonovichFlow


class TangentFlow(AbstractFlow):
    """x' = f(t, x), v' = Df(t, x)v for every vector v of a `Frame`.

    Start from a frame of the flow's own manifold, `tangent.manifold.frame(key, x0, count)`.

    The vectors are made orthonormal after every step, so `growth`/t tends to the largest `count` Lyapunov exponents of
    the tokens together (Benettin et al., Meccanica 15 (1980)). Raises `ValueError` for a flow with noise, for which
    it is `NoisyTangentFlow`, and one whose state is not tokens.
    """

    flow: AbstractFlow

    def __init__(self, flow: AbstractFlow):
        if not isinstance(flow, AbstractFlow) or isinstance(flow, AbstractNoisyFlow):
            raise ValueError(f"flow must be a flow without noise; got {type(flow).__name__}. See NoisyTangentFlow.")
        self.flow = flow
        _ = self.manifold

    @property
    def manifold(self) -> FrameBundle:
        return _bundle(self.flow)

    def __call__(self, t: ScalarLike, x: Frame) -> Frame:
        return _lifted(lambda tokens: self.flow(t, tokens), x)


class NoisyTangentFlow(AbstractStratonovichFlow):
    """The same for a Stratonovich flow, whose noise drives tokens and vectors: dv = Df v dt + D(diffusion ∘ dW) v.

    Itô flows are refused with `ValueError`, and so is a field that depends on the tokens by a Gram factor.
    """

    flow: AbstractStratonovichFlow

    def __init__(self, flow: AbstractStratonovichFlow):
        if not isinstance(flow, AbstractStratonovichFlow):
            raise ValueError(f"flow must be a Stratonovich flow such as CommonNoiseFlow; got {type(flow).__name__}.")
        if flow.only_ito:
            raise ValueError("flow has noise that depends on the tokens by a Gram factor: take modes for its field.")
        self.flow = flow
        _ = self.manifold

    @property
    def manifold(self) -> FrameBundle:
        return _bundle(self.flow)

    @property
    def noise(self) -> AbstractPath | AbstractProcess:
        return self.flow.noise

    @property
    def quiet(self) -> TangentFlow:
        return TangentFlow(self.flow.quiet)

    @property
    def only_ito(self) -> str:
        return self.flow.only_ito

    def __call__(self, t: ScalarLike, x: Frame) -> Frame:
        return _lifted(lambda tokens: self.flow(t, tokens), x)

    def diffusion(self, t: ScalarLike, x: Frame, dw: PyTree[Array]) -> Frame:
        return _lifted(lambda tokens: self.flow.diffusion(t, tokens, dw), x)

    def prepared(self) -> "NoisyTangentFlow":
        prepared = self.flow.prepared()
        assert isinstance(prepared, AbstractStratonovichFlow)
        return NoisyTangentFlow(prepared)


def _lifted(field: Callable[[Tokens], Tokens], frame: Frame) -> Frame:
    """The field at the tokens, and its derivative along every vector."""
    velocity, derivative = jax.linearize(field, frame.x)
    return Frame(velocity, jax.vmap(derivative)(frame.vectors), jnp.zeros_like(frame.growth))


def _bundle(flow: AbstractFlow) -> FrameBundle:
    if not isinstance(flow.manifold, AbstractManifold):
        raise ValueError(f"the state of the flow must be tokens; {type(flow).__name__} moves something else.")
    return FrameBundle(flow.manifold)
