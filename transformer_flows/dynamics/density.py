"""The mean field as an equation: a density on the sphere that moves with the velocity it gives rise to."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import concrete, refuse_non_finite, refuse_other_type
from .._types import ScalarLike
from ..geometry import AbstractBasis, AbstractManifold, Euclidean, refuse_other_coefficients
from ..models import AbstractBackend, Measure
from ..paths import AbstractPath, AbstractProcess
from ._heads_flow import AbstractHeadsFlow
from ._measure_flow import AbstractMeasureFlow


class DensityFlow(AbstractMeasureFlow):
    """The limit of infinitely many tokens of `flow`: ∂_t μ + div(μ v) = 0 by Galerkin's method in a basis.

    The state is the vector c `(k,)` of coefficients of the density ρ = Σ c_k Y_k relative to the uniform measure σ,
    and c_k' = ∫ ρ⟨v, ∇Y_k⟩ dσ by the quadrature of `basis`, v being the velocity of `flow` where μ = ρσ is attended
    to. The mass c_0 is conserved exactly. Any heads, weights and kind of attention of `flow` work; a mask, which tells
    tokens apart, does not: `ValueError`, as for a basis on another space.

    A density that its basis does not resolve, as near a cluster, gets negative parts, which the observable
    `LeastDensity` shows: a solve goes on. Only where they make the mass that a head sees negative, the velocity of
    unnormalised attention and of `MobilityFlow` is NaN and a solve ends. A solve refuses to start from a mass c_0 that
    is not 1: `ValueError`.
    """

    flow: AbstractHeadsFlow
    basis: AbstractBasis

    def __init__(self, flow: AbstractHeadsFlow, basis: AbstractBasis):
        refuse_other_type(flow, "flow", AbstractHeadsFlow, "a flow of tokens such as AttentionFlow")
        refuse_other_type(basis, "basis", AbstractBasis, "a basis such as SphericalHarmonics(16)")
        if flow.mask is not None:
            raise ValueError(f"flow must have no mask, since a density has no tokens to mask; got {flow.mask!r:.80}.")
        if not (isinstance(flow.manifold, type(basis.manifold)) and flow.manifold.d == basis.manifold.d):
            raise ValueError(
                f"basis must be one of functions on {flow.manifold!r}, where the tokens of the flow live; got "
                f"{type(basis).__name__} on {basis.manifold!r}."
            )
        self.flow = flow
        self.basis = basis

    @property
    def manifold(self) -> Euclidean:
        """The space of the coefficients."""
        return Euclidean(self.basis.size)

    @property
    def space(self) -> AbstractManifold:
        """Where the density lives."""
        return self.flow.manifold

    @property
    def weights(self) -> AbstractPath | AbstractProcess:
        return self.flow.weights

    @property
    def backend(self) -> AbstractBackend | None:
        return self.flow.backend

    def measure(self, state: Array) -> Measure:
        """The nodes of the basis, each with its share of the density; shares may be negative."""
        nodes, weights = (part.astype(state.dtype) for part in (self.basis.nodes, self.basis.weights))
        return Measure(nodes, weights * self.density(state))

    def density(self, state: Array) -> Float[Array, "g"]:
        """The values of the density at the nodes. Raises `ValueError` for another number of coefficients."""
        refuse_other_coefficients(self.basis, state)
        return jnp.matmul(self.basis.values.astype(state.dtype), state, precision="highest")

    def check_start(self, x0: Array) -> None:
        """Raise `ValueError` unless `x0` is the coefficients of a density of mass 1. A traced value is not checked."""
        refuse_other_coefficients(self.basis, x0, "x0")
        refuse_non_finite(x0, "x0")
        value = concrete(x0)
        if value is not None and not abs(value[0] - 1) < 1e-5:
            raise ValueError(
                f"x0 must be the coefficients of a density of mass 1, which is their first; got mass {value[0]:.6g}. "
                "Hint: x0 / x0[0]."
            )

    def velocity(self, t: ScalarLike, state: Array) -> Float[Array, "g d"]:
        """The velocity at the nodes."""
        measure = self.measure(state)
        return self.flow.field(t, measure.points, measure)

    def field(self, t: ScalarLike, points: Float[Array, "r d"], measure: Measure) -> Float[Array, "r d"]:
        """The velocity at any points, as that of the flow of tokens."""
        return self.flow.field(t, points, measure)

    def __call__(self, t: ScalarLike, x: Array) -> Float[Array, "k"]:
        flux = self.measure(x).masses[:, None] * self.velocity(t, x)
        return jnp.einsum("kgd,gd->k", self.basis.gradients.astype(x.dtype), flux, precision="highest")
