"""The mean field under common noise: a density that a flow of infinitely many tokens and one random field move."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._checks import refuse_other_type
from .._types import ScalarLike
from ..geometry import Euclidean
from ..models import AbstractField, IdiosyncraticField
from ..paths import AbstractPath, AbstractProcess
from ._noisy_flow import AbstractStratonovichFlow
from .common_noise import noise_of, refuse_other_sphere
from .density import DensityFlow


class CommonNoiseDensityFlow(AbstractStratonovichFlow):
    """dμ + div(μ v) dt + div(μ P ∘dB) = 0 on S¹ or S²: the limit of infinitely many tokens of `CommonNoiseFlow`.

    The state is that of `flow`, the coefficients `(k,)` of the density ρ relative to the uniform measure, which noise
    moves by dc_k = ∫ ρ⟨∘dB, ∇Y_k⟩ dσ, by the quadrature of the basis. The mass c_0 is conserved exactly. In the sense
    of Itô there is ½k(1)Δμ dt more for an isotropic field of covariance k(⟨x, y⟩), so that the mean over B of the
    density without attention obeys that heat equation; for none, give the heads of `flow` the value 0.

    `noise` is that of `CommonNoiseFlow`, and with the same weights one key draws the same noise for both: n tokens of
    the density follow it, on each path of B.

    What B moves out of the basis is lost, as `LeastDensity` shows, and the quadrature is exact where its `exactness` is
    at least twice the degree of the basis, and the field's, and 1. Explicit steps h let the highest degree l grow of
    itself, at a rate of about l⁴k(1)²h/8 (measured on S¹): times the length of the solve, it must not be large.

    Raises `ValueError` for parts of other types, a field on another sphere, noise as `CommonNoiseFlow` does, a field
    that does not depend smoothly on the points (`Gram`), and `IdiosyncraticField`, whose noise no two tokens
    share. Source: arXiv:2604.26898, the stochastic partial differential equation of its limit.
    """

    flow: DensityFlow
    field: AbstractField
    noise: AbstractPath | AbstractProcess

    def __init__(self, flow: DensityFlow, field: AbstractField, *, noise: AbstractPath | AbstractProcess | None = None):
        refuse_other_type(flow, "flow", DensityFlow, "a DensityFlow, with heads of value 0 for no attention")
        refuse_other_type(field, "field", AbstractField, "a random field such as GaussianField")
        refuse_other_sphere(field, flow.space)
        _refuse_other_fields(field)
        self.flow = flow
        self.field = field
        self.noise = noise_of(field, noise)

    @property
    def manifold(self) -> Euclidean:
        """The space of the coefficients."""
        return self.flow.manifold

    @property
    def quiet(self) -> DensityFlow:
        return self.flow

    @property
    def only_ito(self) -> str:
        return ""

    def __call__(self, t: ScalarLike, x: Array) -> Float[Array, "k"]:
        return self.flow(t, x)

    def diffusion(self, t: ScalarLike, x: Array, dw: PyTree[Array]) -> Float[Array, "k"]:
        nodes = self.flow.measure(x)
        # the gradients are tangent: what of the field is not, they do not see
        flux = nodes.masses[:, None] * self.field(nodes.points, dw)
        return jnp.einsum("kgd,gd->k", self.flow.basis.gradients.astype(x.dtype), flux, precision="highest")

    def prepared(self) -> "CommonNoiseDensityFlow":
        return eqx.tree_at(lambda flow: flow.field, self, self.field.prepared())


def _refuse_other_fields(field: AbstractField) -> None:
    """A density has one path under one field, a function of the point."""
    if not field.depends_smoothly:
        raise ValueError(
            f"field must depend smoothly on the points, which a factor of the Gram matrix does not; got {field!r:.80}. "
            "Take modes, such as GaussianField(kernel, Harmonics(16))."
        )
    parts = jax.tree.leaves(field, is_leaf=lambda part: isinstance(part, IdiosyncraticField))
    if any(isinstance(part, IdiosyncraticField) for part in parts):
        raise ValueError(
            "field must be common to all tokens; an IdiosyncraticField is noise of every token's own, which has no "
            "path in the limit of infinitely many: it becomes the heat equation."
        )
