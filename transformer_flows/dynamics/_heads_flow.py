"""What flows of tokens under attention heads share: the tokens as a measure, and the checks of their parts."""

import equinox as eqx
import jax.numpy as jnp

from .._checks import refuse_other_type
from .._types import ScalarLike, Tokens, Valid
from ..geometry import AbstractManifold
from ..models import AbstractBackend, AbstractHeads, AbstractMask, Measure, TiedHeads
from ..paths import AbstractPath, AbstractProcess, Constant, RandomHeads
from ._measure_flow import AbstractMeasureFlow


class AbstractHeadsFlow(AbstractMeasureFlow):
    """A flow of tokens `(n, d)` driven by attention heads."""

    manifold: eqx.AbstractVar[AbstractManifold]
    weights: eqx.AbstractVar[AbstractPath | AbstractProcess]
    mask: eqx.AbstractVar[AbstractMask | None]
    backend: eqx.AbstractVar[AbstractBackend | None]

    @property
    def space(self) -> AbstractManifold:
        """Where the tokens live."""
        return self.manifold

    @property
    def existing(self) -> Valid | None:
        """Which tokens there are `(n,)`; None: all."""
        return None if self.mask is None else self.mask.existing

    def measure(self, state: Tokens) -> Measure:
        """The empirical measure μ of the tokens. Raises `ValueError` for no tokens, or tokens of another dimension."""
        d = self.manifold.d
        if state.ndim != 2 or state.shape[0] == 0 or state.shape[1] != d:
            raise ValueError(f"tokens must have shape (n, {d}) with n >= 1; got {state.shape}.")
        return Measure(self.present(state), mask=self.existing)

    def velocity(self, t: ScalarLike, state: Tokens) -> Tokens:
        """The flow itself: tokens are their own points."""
        return self(t, state)

    def present(self, x: Tokens) -> Tokens:
        """Tokens with zeros in place of what padding holds, so that nothing there can overflow or be NaN."""
        if self.existing is None:
            return x
        if self.existing.shape != x.shape[:1]:
            raise ValueError(f"the padding mask has shape {self.existing.shape}, but there are {x.shape[0]} tokens.")
        return jnp.where(self.existing[:, None], x, 0)

    def tangent(self, x: Tokens, velocity: Tokens) -> Tokens:
        """The tangent part of a velocity; zero for tokens that do not exist."""
        if self.existing is not None:
            velocity = jnp.where(self.existing[:, None], velocity, 0)
        return self.manifold.project(x, velocity)


def as_weights(
    weights: AbstractHeads | AbstractPath | AbstractProcess, manifold: AbstractManifold
) -> AbstractPath | AbstractProcess:
    """Heads as a path that does not move; paths and processes as they are. Raises `ValueError` for anything else."""
    refuse_other_type(manifold, "manifold", AbstractManifold, "a space such as Sphere(3)")
    if not isinstance(weights, AbstractHeads | AbstractPath | AbstractProcess):
        raise ValueError(
            f"weights must be Heads, a path of heads or a process of heads; got {type(weights).__name__}. "
            "Wrap matrices: Heads(score, value) or Heads.tied(D, sign=-1)."
        )
    heads = weights.mean if isinstance(weights, RandomHeads) else weights
    if isinstance(heads, AbstractHeads) and heads.score.shape[-1] != manifold.d:
        raise ValueError(
            f"heads and manifold must have one dimension; got heads in R^{heads.score.shape[-1]} and "
            f"{type(manifold).__name__}({manifold.d})."
        )
    return Constant(weights) if isinstance(weights, AbstractHeads) else weights


def refuse_untied(heads: AbstractHeads, user: str) -> None:
    """Raise `ValueError` in the name of the user unless the heads are tied."""
    if not isinstance(heads, TiedHeads):
        raise ValueError(
            f"{user} needs tied heads, Heads.tied(D, sign=±1), whose sign says whether the energy rises or falls; got "
            f"{type(heads).__name__}."
        )


def refuse_other_parts(mask: AbstractMask | None, backend: AbstractBackend | None) -> None:
    """Raise `ValueError` unless the two are a mask and a backend, or None."""
    refuse_other_type(mask, "mask", AbstractMask | None, "a mask such as Causal(), or None")
    refuse_other_type(backend, "backend", AbstractBackend | None, "a backend such as Blockwise(), or None")
