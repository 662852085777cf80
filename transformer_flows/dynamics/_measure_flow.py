"""What flows of a measure under attention heads share: heads at a time, and sums over the measure."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import ScalarLike
from ..geometry import AbstractManifold
from ..models import (
    AbstractBackend,
    AbstractHeads,
    Measure,
    TiedHeads,
    Tilt,
    apply_heads,
    choose_backend,
    queries,
    times_exp,
)
from ..paths import AbstractPath, AbstractProcess, RandomHeads
from ._flow import AbstractFlow

Points = Float[Array, "m d"]


class AbstractMeasureFlow(AbstractFlow):
    """A measure on `space` that moves under attention heads and has an interaction energy.

    The state is any array that stands for the measure: tokens, or coefficients of a density. Energies, slopes and
    balances know the measure alone.
    """

    manifold: eqx.AbstractVar[AbstractManifold]
    space: eqx.AbstractVar[AbstractManifold]
    weights: eqx.AbstractVar[AbstractPath | AbstractProcess]
    backend: eqx.AbstractVar[AbstractBackend | None]

    @abstractmethod
    def measure(self, state: Array) -> Measure:
        """The measure μ that the state stands for."""

    @abstractmethod
    def velocity(self, t: ScalarLike, state: Array) -> Points:
        """The velocity of every point of `measure(state)`, tangent."""

    @abstractmethod
    def field(self, t: ScalarLike, points: Float[Array, "r d"], measure: Measure) -> Float[Array, "r d"]:
        """The velocity of a particle at any of the `points` where `measure` is attended to, tangent.

        Raises `ValueError` where it depends on more than the measure, such as the order of the tokens.
        """

    def heads(self, t: ScalarLike, state: Array) -> AbstractHeads:
        """The heads at time `t`, in the dtype of the state.

        Raises `ValueError` for a path of something else, and for heads of another dimension than the space.
        """
        heads, d = self.path(t), self.space.d
        if not isinstance(heads, AbstractHeads):
            raise ValueError(f"the weights must be a path of Heads; its values are {type(heads).__name__}.")
        if heads.score.shape[-1] != d:
            raise ValueError(f"the weights are heads in R^{heads.score.shape[-1]}, but the tokens are in R^{d}.")
        return jax.tree.map(lambda leaf: leaf.astype(state.dtype), heads)

    @property
    def path(self) -> AbstractPath:
        """The weights as a path. Raises `ValueError` while they are a process that is not drawn."""
        if isinstance(self.weights, AbstractProcess):
            advice = "realise(flow, key, ts)"
            if isinstance(self.weights, RandomHeads):
                advice += ", or network.flow_of(key, layer) for the flow of one layer of a Network"
            raise ValueError(f"the weights are a {type(self.weights).__name__} not drawn yet: take {advice}.")
        return self.weights

    def tilt(self, heads: AbstractHeads, measure: Measure, values: Float[Array, "m v"] | None = None) -> Tilt:
        """The tilted sums of `values` (None: of the points) under `heads` at the points of the measure itself."""
        points = measure.points
        backend = self.backend_for(heads, measure)
        log_mass, mean = backend(queries(heads, points), measure, points if values is None else values)
        return Tilt(log_mass, mean, measure.masses)

    def mass(self, heads: AbstractHeads, measure: Measure) -> Tilt:
        """The tilted masses alone, with means of no values."""
        return self.tilt(heads, measure, measure.points[:, :0])

    def backend_for(self, heads: AbstractHeads, measure: Measure) -> AbstractBackend:
        """The backend in use for these shapes."""
        h, d, _ = heads.score.shape
        return choose_backend(h=h, n=measure.points.shape[0], d=d) if self.backend is None else self.backend

    def energy_gradient(self, heads: AbstractHeads, measure: Measure, tilt: Tilt) -> Points:
        """∇(δE/δμ)(x_i) `(m, d)`, tangent: for n tokens, n times the Riemannian gradient of the energy at token i."""
        gradient, log_scale = self.scaled_energy_gradient(heads, measure, tilt)
        return times_exp(gradient, log_scale[:, None])

    def scaled_energy_gradient(
        self, heads: AbstractHeads, measure: Measure, tilt: Tilt
    ) -> tuple[Points, Float[Array, "m"]]:
        """The energy's gradient over the largest mobility at its point, and the logarithm of that: both are finite.

        Equal to (1/H) Σ_h m_h(x_i) P_x D_h ȳ_h(x_i) for symmetric scores, ȳ_h being the tilted mean of the points in
        `tilt`. A score that is not symmetric contributes half from each side: point i as the query and as a key.
        """
        sides = [(jnp.swapaxes(heads.score, -1, -2), tilt)]
        if not isinstance(heads, TiedHeads):
            mirrored = type(heads)(score=jnp.swapaxes(heads.score, -1, -2), value=heads.value)
            sides.append((heads.score, self.tilt(mirrored, measure)))
        largest = jnp.max(jnp.stack([side.log_mass for _, side in sides]), axis=(0, 1))
        log_scale = jax.lax.stop_gradient(largest)
        gradients = [_one_sided(matrices, side, log_scale) for matrices, side in sides]
        return self.space.project(measure.points, jnp.mean(jnp.stack(gradients), axis=0)), log_scale


def _one_sided(matrices: Float[Array, "h d d"], tilt: Tilt, log_scale: Float[Array, "m"]) -> Points:
    relative = jnp.exp(tilt.log_mass - log_scale[None])
    return jnp.mean(relative[..., None] * apply_heads(matrices, tilt.mean), axis=0)
