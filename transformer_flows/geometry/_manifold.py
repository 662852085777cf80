"""The contract of a space: how velocities are projected, points retracted, and distances measured."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from .._types import Key, Tokens


class AbstractSpace(eqx.Module):
    """What the states of a flow are: any tree of arrays that a step can be brought back to.

    A space `rescales` if retracting changes a state by more than the error of a step.
    """

    rescales: ClassVar[bool] = False

    @abstractmethod
    def retract(self, x: PyTree[Array]) -> PyTree[Array]:
        """Nearest state of the space; states of the space stay what they are."""


class AbstractManifold(AbstractSpace):
    """A space in which tokens live, embedded in R^d.

    Methods act on the last axis and broadcast over leading axes of equal rank: two clouds `(n, d)` and `(m, d)` are
    compared pair by pair as `x[:, None, :]` and `y[None, :, :]`. The output has the dtype of the input. Derivatives
    are finite everywhere; at a point where none exists (distance of coincident points) they are 0. `log` is refused
    at the cut locus. Every method raises `ValueError` for vectors that are not in R^d.
    """

    d: eqx.AbstractVar[int]

    @abstractmethod
    def project(self, x: Float[Array, "*#batch d"], v: Float[Array, "*#batch d"]) -> Float[Array, "*batch d"]:
        """Tangent part at `x` of the ambient vector `v`."""

    @abstractmethod
    def retract(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """Nearest point of the space."""

    @abstractmethod
    def defect(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Distance in R^d from `x` to the space; infinite where `retract` is undefined."""

    @abstractmethod
    def exp(self, x: Float[Array, "*#batch d"], v: Float[Array, "*#batch d"]) -> Float[Array, "*batch d"]:
        """End of the geodesic that leaves `x` with velocity `v`, at time 1."""

    @abstractmethod
    def log(self, x: Float[Array, "*#batch d"], y: Float[Array, "*#batch d"]) -> Float[Array, "*batch d"]:
        """Velocity at `x` of the shortest geodesic that reaches `y` at time 1."""

    @abstractmethod
    def distance(self, x: Float[Array, "*#batch d"], y: Float[Array, "*#batch d"]) -> Float[Array, "*batch"]:
        """Geodesic distance."""

    @abstractmethod
    def squared_distance(self, x: Float[Array, "*#batch d"], y: Float[Array, "*#batch d"]) -> Float[Array, "*batch"]:
        """Square of the geodesic distance, with the right Hessian at coincident points (`distance` ** 2 has not)."""

    @abstractmethod
    def uniform(self, key: Key, n: int) -> Tokens:
        """`n` independent points of the uniform measure, in JAX's default floating dtype."""
