"""Evaluating observables along a solve: one function that saves, one that adds up."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .._checks import refuse_other_type
from .._types import Scalar
from ..dynamics import AbstractFlow, AbstractNoisyFlow
from ..observables import AbstractIntegral


class Observers(eqx.Module):
    """The observables of one solve, with the instantaneous values at its first time.

    They see a noisy flow without its noise: what they measure belongs to the tokens and to the heads.
    """

    observe: dict[str, Callable]
    states: bool = eqx.field(static=True)
    first: dict[str, PyTree[Array]]

    def __init__(self, observe: dict[str, Callable], states: bool, flow: AbstractFlow, t: Scalar, x: Any):
        self.observe = observe
        self.states = states
        flow = _quiet(flow)
        self.first = {name: integral(t, x, flow) for name, integral in _integrals(observe).items()}

    def rates(self, t: Scalar, x: Any, flow: AbstractFlow) -> dict[str, PyTree[Array]]:
        """What the solver integrates beside the state."""
        flow = _quiet(flow)
        return {name: integral.rate(t, x, flow) for name, integral in _integrals(self.observe).items()}

    def zeros(self, t: Scalar, x: Any, flow: AbstractFlow) -> dict[str, PyTree[Array]]:
        """Running integrals before anything happened."""
        shapes = eqx.filter_eval_shape(self.rates, t, x, flow)
        return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    def add_jumps(self, integrals: dict, t0: Scalar, t1: Scalar, x0: Any, x1: Any, flow: AbstractFlow) -> dict:
        """Running integrals with what a whole step adds to them."""
        added = dict(integrals)
        for name, integral in _integrals(self.observe).items():
            jump = integral.jump(t0, t1, x0, x1, _quiet(flow))
            if jump is not None:
                added[name] = jax.tree.map(jnp.add, integrals[name], jump)
        return added

    def save(self, t: Scalar, x: Any, integrals: dict, flow: AbstractFlow) -> tuple[Any, dict[str, PyTree[Array]]]:
        """The state (None without states) and every observed value at one time."""
        observed = {}
        for name, observable in self.observe.items():
            value = observable(t, x, _quiet(flow))
            if isinstance(observable, AbstractIntegral):
                value = observable.report(self.first[name], value, integrals[name])
            observed[name] = jax.tree.map(_floating, value)
        return (x if self.states else None), observed


def check_observe(observe: Mapping[str, Callable] | None) -> dict[str, Callable]:
    """The observables by name. Raises `ValueError` for what is no mapping, or holds what cannot be called."""
    refuse_other_type(observe, "observe", Mapping | None, "a mapping from names to observables")
    for name, observable in (observe or {}).items():
        if not callable(observable) or isinstance(observable, type):
            raise ValueError(
                f"observe[{name!r}] must be an observable such as Energy(), called as obs(t, x, flow); got "
                f"{observable!r}."
            )
    return dict(observe or {})


def _quiet(flow: AbstractFlow) -> AbstractFlow:
    return flow.quiet if isinstance(flow, AbstractNoisyFlow) else flow


def _integrals(observe: dict[str, Callable]) -> dict[str, AbstractIntegral]:
    return {name: obs for name, obs in observe.items() if isinstance(obs, AbstractIntegral)}


def cast_like(tree: PyTree, like: PyTree) -> PyTree:
    """`tree` in the dtypes of `like`: a float64 clock must not promote a float32 state."""
    return jax.tree.map(lambda leaf, ref: leaf.astype(ref.dtype), tree, like)


def _floating(value: Array) -> Array:
    """Counts and flags as floating numbers, so that a time that is not reached can hold NaN."""
    return value if jnp.issubdtype(value.dtype, jnp.inexact) else value.astype(float)
