"""Keeping a Diffrax solver on the manifold."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .._types import Scalar
from ..geometry import AbstractSpace

# What the solvers here advance: the state and, beside it, the running integrals of the observables.
Augmented = tuple[PyTree[Array], PyTree[Array]]


class Retracting(diffrax.AbstractWrappedSolver):
    """Any Diffrax solver, with the state retracted after every step.

    Projecting the accepted point keeps the order of the solver (Hairer, Lubich, Wanner, Geometric Numerical
    Integration, IV.4); without it the radial mode of a repulsive flow is unstable. Running integrals are not touched.
    `stale`: retraction changes the state by more than the error of the step, as for frames, so that the last stage
    cannot be the first one of the next step.
    """

    solver: diffrax.AbstractSolver
    retract: Callable
    stale: bool = eqx.field(static=True)

    @property
    def root_finder(self):
        return self.solver.root_finder  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def root_find_max_steps(self):
        return self.solver.root_find_max_steps  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def scan_kind(self):
        return getattr(self.solver, "scan_kind", None)

    @property
    def term_structure(self):
        return self.solver.term_structure

    @property
    def interpolation_cls(self):  # pyright: ignore
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self):
        return self.solver.term_compatible_contr_kwargs

    def order(self, terms):
        return self.solver.order(terms)

    def strong_order(self, terms):
        return self.solver.strong_order(terms)

    def error_order(self, terms):
        return self.solver.error_order(terms)

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        (x, integrals), error, dense_info, solver_state, result = self.solver.step(
            terms, t0, t1, y0, args, solver_state, True if self.stale else made_jump
        )
        return (self.retract(x), integrals), error, dense_info, solver_state, result

    def func(self, terms, t0, y0, args):
        return self.solver.func(terms, t0, y0, args)


def retracting(solver: diffrax.AbstractSolver, space: AbstractSpace, rtol: Scalar, atol: Scalar) -> Retracting:
    """Wrap `solver`; its loop over stages becomes a scan, so that every derivative mode passes through it.

    Where an implicit solver leaves the tolerances of its root finder open, they are `rtol` and `atol`.
    """
    if getattr(solver, "scan_kind", "none") is None:
        solver = eqx.tree_at(lambda s: s.scan_kind, solver, "bounded", is_leaf=lambda leaf: leaf is None)
    if isinstance(solver, diffrax.AbstractImplicitSolver):
        # Diffrax's mark for a tolerance that is left open is neither a number nor a function
        finder = solver.root_finder
        set_ = lambda value, default: value if eqx.is_array_like(value) or callable(value) else default
        values = set_(finder.rtol, rtol), set_(finder.atol, atol), set_(finder.norm, _largest)
        solver = eqx.tree_at(
            lambda s: (s.root_finder.rtol, s.root_finder.atol, s.root_finder.norm),
            solver,
            values,
            is_leaf=lambda leaf: leaf is finder.norm,
        )
    return Retracting(solver, space.retract, space.rescales)


def _largest(y: PyTree[Array]) -> Array:
    return jax.tree.reduce(jnp.maximum, jax.tree.map(lambda leaf: jnp.max(jnp.abs(leaf), initial=0), y))
