"""Tokens under attention whose value matrix is noise, common to all of them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete, refuse_other_type
from .._types import Scalar, ScalarLike, Tokens, as_float
from ..geometry import Sphere
from ..paths import AbstractPath, AbstractProcess
from ._noisy_flow import AbstractItoFlow
from .attention import AttentionFlow
from .common_noise import noise_like


class ValueNoiseFlow(AbstractItoFlow):
    """dx_i = (flow(t, x)_i − ½(d−1)σ²|m_i|² x_i) dt + σ P_{x_i} dW m_i on the sphere, in the sense of Itô.

    m_i is the average of the tokens that token i sees, Σ_j x_j e^{β⟨x_i, x_j⟩} / Σ_j e^{β⟨x_i, x_j⟩} for the score βI,
    and W a d × d matrix of independent Brownian motions, the same for all tokens: equal tokens stay equal to the last
    bit. The values of the heads are the mean of the value matrix, 0 for noise alone. Heads share one matrix, so that
    m_i is the mean of what they see; a kind of attention and a mask of `flow` are those of m_i too. The normal part of
    the drift keeps |x_i| = 1. As m_i depends on the tokens, the equation in the sense of Stratonovich is another one.

    `strength` is σ. `noise` is that of `CommonNoiseFlow`, of shape `(d, d)`; None draws it on the steps of the solve.

    Raises `ValueError` for a flow of another type, one that is not on a sphere, a strength that is negative or not
    finite, and noise as `CommonNoiseFlow` does. Source: arXiv:2601.21942.
    """

    flow: AttentionFlow
    strength: Scalar
    noise: AbstractPath | AbstractProcess

    def __init__(
        self, flow: AttentionFlow, strength: ArrayLike, *, noise: AbstractPath | AbstractProcess | None = None
    ):
        refuse_other_type(flow, "flow", AttentionFlow, "an AttentionFlow, with heads of value 0 for noise alone")
        if not isinstance(flow.manifold, Sphere):
            raise ValueError(f"flow must move on a sphere; got one on {flow.manifold}.")
        value = concrete(strength)
        if value is not None and not (value.ndim == 0 and 0 <= value < jnp.inf):
            raise ValueError(f"strength must be one finite number of at least 0; got {strength!r}.")
        d = flow.manifold.d
        self.flow = flow
        self.strength = as_float(strength)
        self.noise = noise_like(jax.ShapeDtypeStruct((d, d), jnp.result_type(float)), noise, type(self).__name__)

    @property
    def manifold(self) -> Sphere:
        assert isinstance(self.flow.manifold, Sphere)  # as checked
        return self.flow.manifold

    @property
    def quiet(self) -> AttentionFlow:
        return self.flow

    def __call__(self, t: ScalarLike, x: Tokens) -> Tokens:
        square = jnp.sum(self.average(t, x) ** 2, axis=-1, keepdims=True)
        normal = 0.5 * (self.manifold.d - 1) * self.strength.astype(x.dtype) ** 2 * square * x
        return self.flow(t, x) - self._of_existing(normal)

    def average(self, t: ScalarLike, x: Tokens) -> Tokens:
        """m_i, the average that token i sees, over all heads `(n, d)`."""
        return jnp.mean(self.flow.averages(t, x), axis=0)

    def diffusion(self, t: ScalarLike, x: Tokens, dw: Float[Array, "d d"]) -> Tokens:
        moved = jnp.matmul(self.average(t, x), dw.T.astype(x.dtype), precision="highest")
        return self._of_existing(self.manifold.project(x, self.strength.astype(x.dtype) * moved))

    def prepared(self) -> "ValueNoiseFlow":
        return self

    def _of_existing(self, velocity: Tokens) -> Tokens:
        existing = self.flow.existing
        return velocity if existing is None else jnp.where(existing[:, None], velocity, 0)
