"""No motion at all: what noise alone moves."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .._checks import refuse_other_type
from .._types import ScalarLike
from ..geometry import AbstractManifold
from ._flow import AbstractFlow


class RestFlow(AbstractFlow):
    """x' = 0 on `manifold`: a transformer without attention, for `CommonNoiseFlow`."""

    manifold: AbstractManifold

    def __init__(self, manifold: AbstractManifold):
        refuse_other_type(manifold, "manifold", AbstractManifold, "a space such as Sphere(3)")
        self.manifold = manifold

    def __call__(self, t: ScalarLike, x: PyTree[Array]) -> PyTree[Array]:
        return jax.tree.map(jnp.zeros_like, x)
