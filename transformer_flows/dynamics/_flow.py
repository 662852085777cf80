"""The contract of a flow: a vector field on a manifold, called as flow(t, x)."""

import functools
import operator
from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, PyTree

from .._types import ScalarLike, Valid
from ..geometry import AbstractSpace
from ..models import AbstractMask


class AbstractFlow(eqx.Module):
    """A vector field. Paths, processes and masks among its parts are found by type.

    A flow is `explosive` if solutions may leave every bound in finite time: a solve then looks for it.
    """

    manifold: eqx.AbstractVar[AbstractSpace]

    explosive: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, t: ScalarLike, x: PyTree[Array]) -> PyTree[Array]:
        """Tangent velocity at time `t` and state `x`."""


def existing_tokens(flow: AbstractFlow) -> Valid | None:
    """Which tokens exist according to the masks of the flow `(n,)`; None: all."""
    parts = jax.tree.leaves(flow, is_leaf=lambda part: isinstance(part, AbstractMask))
    masks = [part.existing for part in parts if isinstance(part, AbstractMask) and part.existing is not None]
    return functools.reduce(operator.and_, masks) if masks else None
