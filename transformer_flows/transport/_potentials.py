"""Entropic potentials by ott-jax. Imported on use: ott takes seconds to import."""

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from ._duality import Potential, Problem

with warnings.catch_warnings():
    # ott imports jaxopt, which warns that it is no longer maintained; ott's Sinkhorn does not call it
    warnings.filterwarnings("ignore", message="JAXopt is no longer maintained", category=DeprecationWarning)
    from ott.geometry import geometry
    from ott.problems.linear import linear_problem
    from ott.solvers.linear import acceleration, sinkhorn


class Numerics(eqx.Module):
    """What the iterations need besides the problem."""

    epsilon: Any  # numbers that may be traced; ott's annotations say float
    tolerance: Any
    max_iterations: int = eqx.field(static=True)


@jax.tree_util.register_pytree_node_class
class _Rows(geometry.Geometry):
    """A cost that is computed by rows in each iteration and never kept.

    ott's own PointCloud with a batch size calls a function that jax has removed.
    """

    def __init__(self, problem: Problem, epsilon: Any):
        super().__init__(epsilon=epsilon)
        self.problem = problem

    def apply_lse_kernel(self, f: Array, g: Array, eps: Any, vec: Array | None = None, axis: int = 0):
        """ε log Σ e^{(f + g - C)/ε} over rows (axis 0) or columns (1), less the potential that is not summed over."""
        assert vec is None  # the iterations never weigh
        over, summed = (self.problem.columns, f) if axis == 0 else (self.problem.rows, g)
        return over(lambda cost: eps * jax.nn.logsumexp((summed - cost) / eps)), jnp.ones((1,), f.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        return self.problem.x.shape[0], self.problem.y.shape[0]

    @property
    def dtype(self):
        return self.problem.x.dtype

    def tree_flatten(self) -> Any:
        return (self.problem, self._epsilon_init), None

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        return cls(*children)


def potential(problem: Problem, numerics: Numerics) -> tuple[Potential, Bool[Array, ""]]:
    """The potential on `y` of entropic transport from `x` to `y`, and whether the iterations converged."""
    return _solve(problem, numerics)


def own_potential(problem: Problem, numerics: Numerics) -> tuple[Potential, Bool[Array, ""]]:
    """The same where both clouds are one, by averaged updates, which converge in a few steps.

    Source: Feydy et al., AISTATS 2019, equation 25.
    """
    momentum = acceleration.Momentum(start=0, value=0.5)
    return _solve(problem, numerics, parallel_dual_updates=True, momentum=momentum)


def _solve(problem: Problem, numerics: Numerics, **options: Any) -> tuple[Potential, Bool[Array, ""]]:
    solver = sinkhorn.Sinkhorn(threshold=numerics.tolerance, max_iterations=numerics.max_iterations, **options)
    with jax.numpy_rank_promotion("allow"):  # ott adds vectors to matrices
        if problem.block is None:
            space = geometry.Geometry(cost_matrix=problem.rows(lambda cost: cost), epsilon=numerics.epsilon)
        else:
            space = _Rows(problem, numerics.epsilon)
        result = solver(linear_problem.LinearProblem(space))
    fine = jnp.isfinite(result.g).all()
    # any vector is a valid, if bad, potential: the bounds made of it hold
    g = jnp.where(fine, result.g, 0)
    return g - jnp.mean(g), jnp.logical_and(jnp.asarray(result.converged), fine)
