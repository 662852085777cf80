"""What a potential g on the second cloud says about transport with cost C between uniform clouds, row by row of C.

Rows are computed `block` at a time, all at once where it is None, and again where a derivative needs them: with a
block no n × m array is kept.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ..geometry import AbstractManifold
from ._clouds import Cloud

Potential = Float[Array, "_"]
Row = Float[Array, "_"]
ROUNDING = 8  # how many units in the last place the sums below are trusted to


class Problem(eqx.Module):
    """Two clouds, their manifold, and how many rows are computed at a time."""

    x: Cloud
    y: Cloud
    manifold: AbstractManifold
    block: int | None = eqx.field(static=True)

    def rows(self, function: Callable[..., Any], *more: Array) -> Any:
        """`function(row of C, *entries of more)` for every token of `x`."""
        return self._over(self.x, self.y, function, more)

    def columns(self, function: Callable[..., Any], *more: Array) -> Any:
        """`function(column of C, *entries of more)` for every token of `y`."""
        return self._over(self.y, self.x, function, more)

    def _over(self, here: Cloud, there: Cloud, function: Callable[..., Any], more: tuple[Array, ...]) -> Any:
        def one(arguments):
            token, *entries = arguments
            return function(self.manifold.squared_distance(token[None], there), *entries)

        if self.block is None:
            return jax.vmap(one)((here, *more))
        return jax.lax.map(jax.checkpoint(one), (here, *more), batch_size=self.block)


def mean_cost(problem: Problem) -> Scalar:
    """The mean of C."""
    return jnp.mean(problem.rows(jnp.mean))


def semi_dual(problem: Problem, g: Potential, epsilon: Scalar) -> Scalar:
    """mean(f) + mean(g), f the best partner of g: the entropic cost ⟨P, C⟩ + ε KL(P | uniform) where g is optimal.

    Its error is of second order in that of g; its derivative with g held fixed is ⟨P, dC⟩, hence right to first order.
    Source: Cuturi & Peyré, SIAM J. Imaging Sci. 2016; Peyré & Cuturi, Computational Optimal Transport, 2019.
    """

    def partner(cost: Row) -> Scalar:
        return -_soft_max(g - cost, epsilon)[0]

    return jnp.mean(problem.rows(partner)) + jnp.mean(g)


def lower_bound(problem: Problem, h: Potential) -> tuple[Scalar, Scalar]:
    """A lower bound of the transport cost and the rounding that it was lowered by.

    By Kantorovich duality: mean_i min_j (C_ij - h_j) + mean(h) for any potential h. Rounding could raise it.
    """

    def partner(cost: Row) -> tuple[Scalar, Scalar]:
        return jnp.min(cost - h), jnp.max(cost)

    f, largest = problem.rows(partner)
    rounding = ROUNDING * jnp.finfo(h.dtype).eps * (jnp.max(largest) + jnp.max(jnp.abs(h)))
    return jnp.mean(f) + jnp.mean(h) - rounding, rounding


def entropic_plan_cost(problem: Problem, g: Potential, epsilon: Scalar) -> Scalar:
    """⟨P, C⟩ of the entropic plan of g, made feasible: an upper bound of the transport cost."""

    def statistics(cost: Row) -> tuple[Scalar, Scalar]:
        return _soft_max(g - cost, epsilon)[1:]

    def masses(cost: Row, potential: Array, top: Array, mass: Array) -> Row:
        return jnp.exp(jnp.minimum(potential - cost - top, 0) / epsilon) / mass

    return _feasible_cost(problem, g, problem.rows(statistics), masses)


def matching_cost(problem: Problem, h: Potential, tie: Scalar) -> Scalar:
    """As `entropic_plan_cost`, of the plan that sends x_i to the y_j with the largest h_j - C_ij, ties shared."""

    def statistics(cost: Row) -> tuple[Scalar, Scalar]:
        level = jnp.max(h - cost) - tie
        return level, jnp.sum(h - cost >= level).astype(cost.dtype)

    def masses(cost: Row, potential: Array, level: Array, count: Array) -> Row:
        return (potential - cost >= level) / count

    return _feasible_cost(problem, h, problem.rows(statistics), masses)


def _soft_max(z: Row, epsilon: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """ε log mean_j e^{z_j/ε}, with the largest z and Σ_j e^{(z_j - largest)/ε}, by which a row of P is normalised."""
    top = jax.lax.stop_gradient(jnp.max(z))
    mass = jnp.sum(jnp.exp((z - top) / epsilon))  # the maximum is subtracted before scaling: no overflow for any ε
    return top + epsilon * jnp.log(mass / z.size), top, mass


def _feasible_cost(
    problem: Problem, g: Potential, statistics: tuple[Array, Array], masses: Callable[..., Row]
) -> Scalar:
    """⟨P, C⟩ of the plan P with rows `masses(row of C, g, *statistics)/n`, rounded to the uniform marginals.

    Columns that hold too much are scaled down; what then lacks in rows and columns is coupled independently. The plan
    is constant to derivatives. Source: Altschuler, Weed & Rigollet, NeurIPS 2017, algorithm 2.
    """
    n, m = problem.x.shape[0], problem.y.shape[0]
    g, statistics = jax.lax.stop_gradient((g, statistics))
    received = problem.columns(lambda cost, g_j: jnp.sum(masses(cost, g_j, *statistics)), g) * (m / n)
    kept = 1 / jnp.maximum(received, 1)
    lack_of_column = _lack(received)

    def row(cost: Row, *statistics: Array) -> tuple[Scalar, Scalar, Scalar]:
        plan = jax.lax.stop_gradient(masses(cost, g, *statistics)) * kept
        return jnp.sum(plan * cost), jnp.sum(plan), jnp.sum(lack_of_column * cost)

    cost, sent, to_lacking = problem.rows(row, *statistics)
    lack_of_row = _lack(sent)
    total = jnp.sum(lack_of_column)
    coupled = jnp.sum(lack_of_row * to_lacking) / jnp.where(total > 0, total, 1)
    return (jnp.sum(cost) + coupled) / n


def _lack(mass: Float[Array, "_"]) -> Float[Array, "_"]:
    """How far each mass is below 1, up to rounding."""
    lack = jax.lax.stop_gradient(1 - mass)
    return jnp.where(lack > ROUNDING * jnp.finfo(mass.dtype).eps, lack, 0)
