"""Whether a basis resolves the density that moves in it."""

import jax.numpy as jnp
from jaxtyping import Array

from .._types import Scalar, ScalarLike
from ..dynamics import AbstractFlow, DensityFlow
from ._observable import AbstractObservable


class LeastDensity(AbstractObservable[DensityFlow]):
    """min ρ over the nodes of the basis of a `DensityFlow`, relative to the uniform measure, a scalar.

    Negative where the basis does not resolve the density: a solve does not end there, but what it gives is no
    measure. Raises `ValueError` for another flow.
    """

    def __call__(self, t: ScalarLike, x: Array, flow: AbstractFlow) -> Scalar:
        if not isinstance(flow, DensityFlow):
            raise ValueError(f"LeastDensity needs a DensityFlow; got {type(flow).__name__}.")
        return jnp.min(flow.density(x))
