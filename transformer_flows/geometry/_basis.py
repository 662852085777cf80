"""The contract of a basis: orthonormal functions on a sphere with a quadrature, so that a density is a vector."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._types import Key, Scalar, Tokens, as_float
from ._manifold import AbstractManifold
from ._size import size

Coefficients = Float[Array, "k"]
_MOST_ROUNDS = 100_000


class AbstractBasis(eqx.Module):
    """Real functions Y_0 = 1, Y_1, … on a sphere, orthonormal under its uniform probability measure σ.

    They are the harmonics up to `degree`, in the order of their degrees `(k,)`. Called with points `(n, d)`, a basis
    returns the values `(n, k)` there. A density Σ c_k Y_k relative to σ is the vector `(k,)` of its coefficients; its
    mass is c_0.

    The quadrature of the `nodes` `(g, d)` with `weights` `(g,)`, whose sum is 1, is exact for polynomials up to the
    degree `exactness`. At the nodes `values` `(g, k)` are those of the functions and `gradients` `(k, g, d)` their
    tangent gradients, computed in double precision.
    """

    degree: eqx.AbstractVar[int]
    exactness: eqx.AbstractVar[int]
    nodes: eqx.AbstractVar[Float[Array, "g d"]]
    weights: eqx.AbstractVar[Float[Array, "g"]]
    values: eqx.AbstractVar[Float[Array, "g k"]]
    gradients: eqx.AbstractVar[Float[Array, "k g d"]]

    @property
    @abstractmethod
    def manifold(self) -> AbstractManifold:
        """The sphere."""

    @property
    @abstractmethod
    def degrees(self) -> np.ndarray:
        """The degree of every function `(k,)`, not decreasing."""

    @abstractmethod
    def __call__(self, points: Tokens) -> Float[Array, "n k"]:
        """Values of the functions at unit vectors `(n, d)`."""

    @property
    def size(self) -> int:
        """How many functions there are, k."""
        return self.degrees.size

    def coefficients(self, density: ArrayLike) -> Coefficients:
        """∫ ρ Y_k dσ by quadrature, for the values of a density at the nodes `(g,)`."""
        density = as_float(density)
        if density.shape != self.weights.shape:
            raise ValueError(
                f"density must hold a value for each of the nodes, {self.weights.shape}; got {density.shape}."
            )
        weights, values = self.weights.astype(density.dtype), self.values.astype(density.dtype)
        return jnp.matmul(weights * density, values, precision="highest")

    def empirical(self, x: Tokens) -> Coefficients:
        """(1/n) Σ_i Y_k(x_i): the coefficients of the empirical measure of tokens `(n, d)`."""
        return jnp.mean(self(x), axis=0)

    def density(self, coefficients: Coefficients, points: Tokens) -> Float[Array, "n"]:
        """Σ c_k Y_k at points `(n, d)`. Raises `ValueError` for another number of coefficients."""
        refuse_other_coefficients(self, coefficients)
        return jnp.matmul(self(points), coefficients, precision="highest")

    def bound(self, coefficients: Coefficients) -> Scalar:
        """A bound of |Σ c_k Y_k|: by the addition theorem the squares of the N functions of one degree add up to N."""
        refuse_other_coefficients(self, coefficients)
        of_degree = np.bincount(self.degrees)
        squares = jax.ops.segment_sum(coefficients**2, self.degrees, of_degree.size)
        return jnp.sum(jnp.sqrt(squares * of_degree.astype(squares.dtype)))

    def sample(self, key: Key, coefficients: Coefficients, n: int) -> Tokens:
        """`n` independent tokens of the density `(n, d)`, by rejection; where it is negative it counts as 0.

        Takes about `bound` rounds; constant to derivatives. Raises an error for a density that is nowhere positive, or
        not finite, and `ValueError` for another number of coefficients.
        """
        refuse_other_coefficients(self, coefficients)
        return _sample(self, key, coefficients, size(n, "n", 1))


@eqx.filter_jit
def _sample(basis: AbstractBasis, key: Key, coefficients: Coefficients, n: int) -> Tokens:
    bound = basis.bound(coefficients)

    def propose(carry):
        x, accepted, round_ = carry
        of_point, of_height = jr.split(jr.fold_in(key, round_))
        new = basis.manifold.uniform(of_point, n).astype(coefficients.dtype)
        below = bound * jr.uniform(of_height, (n,), coefficients.dtype) < basis.density(coefficients, new)
        return jnp.where((below & ~accepted)[:, None], new, x), accepted | below, round_ + 1

    start = jnp.zeros((n, basis.manifold.d), coefficients.dtype), jnp.zeros(n, bool), 0
    more = lambda carry: ~jnp.all(carry[1]) & (carry[2] < _MOST_ROUNDS)
    x, accepted, _ = jax.lax.while_loop(more, propose, start)
    return eqx.error_if(x, ~jnp.all(accepted), "sample: the density must be finite and somewhere positive.")


def refuse_other_coefficients(basis: AbstractBasis, coefficients: Any, name: str = "coefficients") -> None:
    """Raise `ValueError` naming the argument unless it is an array of a number for each function of the basis."""
    shape = getattr(coefficients, "shape", None)
    if shape != (basis.size,):
        got = type(coefficients).__name__ if shape is None else f"shape {shape}"
        raise ValueError(
            f"{name} must hold the coefficients of a density, one for each of the {basis.size} functions of "
            f"{type(basis).__name__}({basis.degree}), shape ({basis.size},); got {got}."
        )


def chosen_exactness(degree: int, exactness: int | None) -> int:
    """The degree up to which a quadrature is exact: three times that of the functions where nothing else is asked for.

    A product of density, velocity and gradient has that degree while the velocity has no more than the functions.
    """
    if exactness is None:
        return 3 * degree
    return size(exactness, "exactness", 2 * degree)
