"""How spread out the tokens are: order parameters, diameter, pairwise cosines."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete
from .._types import Scalar, ScalarLike, Tokens, as_float
from ..dynamics import AbstractFlow
from ..geometry import AbstractManifold
from ._observable import AbstractObservable
from ._pairs import exists_in, pair_exists, squared_distances


class OrderParameter(AbstractObservable[AbstractFlow]):
    """|(1/n) Σ_i x_i|, a scalar: 1 exactly at one cluster on the sphere, 0 for balanced clouds."""

    def __call__(self, t: ScalarLike, x: Tokens, flow: AbstractFlow) -> Scalar:
        exists = exists_in(x, flow)
        mean = jnp.sum(jnp.where(exists[:, None], x, 0), axis=0) / jnp.sum(exists)
        # the norm at 0 has no gradient; take 0, its smallest subgradient
        square = jnp.sum(mean**2)
        positive = square > 0
        return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0).astype(x.dtype)


class NematicOrder(AbstractObservable[AbstractFlow]):
    """Largest eigenvalue of the second moment (1/n) Σ_i x_i x_iᵀ, a scalar: 1 exactly where tokens on the sphere lie on
    one axis, as one cluster does, or two antipodal ones; 1/d for isotropic clouds."""

    def __call__(self, t: ScalarLike, x: Tokens, flow: AbstractFlow) -> Scalar:
        exists = exists_in(x, flow)
        there = jnp.where(exists[:, None], x, 0)
        second = jnp.matmul(there.T, there, precision="highest") / jnp.sum(exists).astype(x.dtype)
        return jnp.linalg.eigvalsh(second)[-1]


class Diameter(AbstractObservable[AbstractFlow]):
    """Geodesic distance of the two tokens farthest apart in R^d, a scalar; memory O(n), work O(n²).

    On the sphere and in R^d the order of distances is that of R^d, so this is the largest geodesic distance.
    """

    def __call__(self, t: ScalarLike, x: Tokens, flow: AbstractFlow) -> Scalar:
        exists = exists_in(x, flow)
        still = jax.lax.stop_gradient(x)

        def farthest(token):
            square = jnp.where(exists, squared_distances(token[None], still)[0], -1)
            return jnp.argmax(square), jnp.max(square)

        partner, square = jax.lax.map(farthest, still, batch_size=256)
        first = jnp.argmax(jnp.where(exists, square, -1))
        assert isinstance(flow.manifold, AbstractManifold)  # as for every flow of tokens
        return flow.manifold.distance(x[first], x[partner[first]])


class PairwiseCosine(AbstractObservable[AbstractFlow]):
    """Quantiles of the cosines ⟨x_i, x_j⟩/(|x_i||x_j|) over pairs i < j, `(q,)`; NaN for fewer than two tokens."""

    quantiles: Float[Array, "q"]

    def __init__(self, quantiles: Sequence[float] | ArrayLike = (0.05, 0.25, 0.5, 0.75, 0.95)):
        self.quantiles = jnp.atleast_1d(as_float(jnp.asarray(quantiles)))
        value = concrete(self.quantiles)
        if value is not None and not (value.ndim == 1 and value.size and ((value >= 0) & (value <= 1)).all()):
            raise ValueError(f"quantiles must be numbers from 0 to 1, at least one; got {quantiles}.")

    def __call__(self, t: ScalarLike, x: Tokens, flow: AbstractFlow) -> Float[Array, "q"]:
        square = jnp.sum(x**2, axis=-1, keepdims=True)
        unit = x / jnp.sqrt(jnp.where(square > 0, square, 1))
        cosines = jnp.matmul(unit, unit.T, precision="highest")
        cosines = jnp.where(pair_exists(x, flow), cosines, jnp.nan)
        return jnp.nanquantile(cosines, self.quantiles.astype(x.dtype)).astype(x.dtype)
