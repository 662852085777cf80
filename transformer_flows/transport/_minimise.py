"""L-BFGS down to the rounding of the objective, with implicit derivatives."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
import optimistix
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from .._checks import concrete
from .._types import Scalar, ScalarLike


class Minimum(eqx.Module):
    """Where L-BFGS stopped, whether it converged, and after how many evaluations of the objective."""

    at: Float[Array, "..."]
    converged: Bool[Array, ""]
    evaluations: Int[Array, ""]


def minimise(
    objective: Callable[[Array], Scalar],
    start: Float[Array, "..."],
    *,
    tolerance: ScalarLike,
    rounding: Scalar,
    max_iterations: int,
) -> Minimum:
    """Descend from `start` until a step is below `tolerance` relative to the unknown.

    `rounding` is the error of the objective's values: steps that change them by less are below notice too. The
    unknown should be scaled so that the Hessian is about the identity. Derivatives are those of the minimiser, by a
    positive linear solve with the Hessian.
    """
    # never 0, by which the test of convergence divides
    rounding = jax.lax.stop_gradient(rounding) + jnp.finfo(start.dtype).tiny
    solver = _Descent(rtol=tolerance, atol=jnp.sqrt(rounding), search=_Forgiving(rounding))
    found = optimistix.minimise(
        lambda z, _: objective(z),
        solver,
        start,
        max_steps=max_iterations,
        throw=False,
        adjoint=optimistix.ImplicitAdjoint(_hessian_solver(start.dtype)),
        tags=frozenset({lineax.positive_semidefinite_tag}),
    )
    return Minimum(found.value, found.result == optimistix.RESULTS.successful, found.stats["num_steps"])


def refuse_other_tolerance(tolerance: ArrayLike | None) -> None:
    """Raise `ValueError` unless the tolerance is between 0 and 1, or None."""
    value = concrete(tolerance)
    if value is not None and not (value.ndim == 0 and 0 < value < 1):
        raise ValueError(f"tolerance must be between 0 and 1; got {value}.")


def _hessian_solver(dtype: jnp.dtype) -> lineax.CG:
    """Conjugate gradients that end before they run into rounding, where they would break down."""
    rounding = float(jnp.finfo(dtype).eps)
    return lineax.CG(rtol=max(1e-10, 100 * rounding), atol=max(1e-12, rounding))


class _Forgiving(optimistix.AbstractSearch):
    """Armijo backtracking that takes a rise by rounding for none: at a minimum every step seems to rise."""

    rounding: Scalar
    strict: optimistix.BacktrackingArmijo = optimistix.BacktrackingArmijo()

    def init(self, y, f_info_struct):
        return self.strict.init(y, f_info_struct)

    def step(self, first_step, y, y_eval, f_info, f_eval_info, state):
        forgiven = optimistix.FunctionInfo.Eval(f_eval_info.as_min() - self.rounding)
        return self.strict.step(first_step, y, y_eval, f_info, forgiven, state)


class _Descent(optimistix.AbstractLBFGS):
    """L-BFGS with the search above."""

    rtol: ScalarLike
    atol: Scalar
    search: _Forgiving
    norm: Callable = optimistix.max_norm
    use_inverse: bool = True
    history_length: int = 30  # fewer stall where the mobility makes paths bend far
    descent: optimistix.NewtonDescent = optimistix.NewtonDescent()
    verbose: Callable[..., None] = lambda **_: None
