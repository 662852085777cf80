"""Error control that says when it has no step left to take."""

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .._types import Scalar

# The error of a step that left the finite numbers, in units of the tolerance.
_TOO_LARGE = 1e10


class Resolved(diffrax.AbstractAdaptiveStepSizeController):
    """A controller that ends the solve when the next step is below the resolution of a clock of size 1.

    The wrapped controller's own least step is not used: it keeps a step of that size whatever its error, and so runs
    through singularities.
    """

    controller: diffrax.AbstractAdaptiveStepSizeController

    @property
    def rtol(self):
        return self.controller.rtol

    @property
    def atol(self):
        return self.controller.atol

    @property
    def norm(self):  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.controller.norm

    def wrap(self, direction):
        return Resolved(self.controller.wrap(direction))  # pyright: ignore

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        return self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        keep, next_t0, next_t1, made_jump, controller_state, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
        )
        smallest = 8 * jnp.finfo(jnp.result_type(next_t1)).eps
        result = diffrax.RESULTS.where(next_t1 - next_t0 > smallest, result, diffrax.RESULTS.dt_min_reached)
        return keep, next_t0, next_t1, made_jump, controller_state, result


def error_of_state(y: tuple[PyTree[Array], PyTree[Array]]) -> Scalar:
    """Root mean square over all components of the state alone: observing does not change the steps."""
    flat = jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(y[0])])
    square = jnp.mean(flat**2)
    # the root has no derivative at a zero error; one that is not finite is large, so that the step shrinks
    good = (square > 0) & jnp.isfinite(square)
    root = jnp.sqrt(jnp.where(good, square, 1))
    return jnp.where(good, root, jnp.where(square == 0, 0, _TOO_LARGE))
