"""Steps of flows that move by noise: the term that Diffrax's solvers take, and which solvers may take it."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from .._checks import concrete
from ..dynamics import AbstractFlow, AbstractItoFlow, AbstractNoisyFlow, AbstractStratonovichFlow, CommonNoiseFlow
from ..paths import AbstractPath
from ._clock import Clock
from ._observe import cast_like

_STRATONOVICH = (diffrax.EulerHeun, diffrax.Heun, diffrax.Midpoint, diffrax.Ralston)
_NAMES = ", ".join(f"{solver.__name__}()" for solver in _STRATONOVICH)


class NoiseTerm(diffrax.AbstractTerm):
    """The noise of one step: the flow's diffusion, linear in the `increment` of its path over the step."""

    increment: PyTree[Array]

    def vf(self, t, y, args):
        raise NotImplementedError("the diffusion is never formed as a matrix")

    def contr(self, t0, t1, **kwargs):
        return self.increment

    def prod(self, vf, control):
        raise NotImplementedError("the diffusion is never formed as a matrix")

    def vf_prod(self, t, y, args, control):
        flow, _, t0, _ = args
        x, integrals = y
        moved = flow.diffusion(t0, x, control)
        return cast_like((moved, jax.tree.map(jnp.zeros_like, integrals)), y)

    def is_vf_expensive(self, t0, t1, y, args):
        return True


def noise_term(flow: AbstractNoisyFlow, t0: Array, t1: Array) -> NoiseTerm:
    """The noise of the flow between two times."""
    assert isinstance(flow.noise, AbstractPath)
    change = flow.noise.increment(t0, t1)
    return NoiseTerm(jax.tree.map(jnp.add, change.drift, change.martingale))  # pyright: ignore[reportCallIssue]


def default_solver(flow: AbstractNoisyFlow) -> diffrax.AbstractSolver:
    """The cheapest one: the drift once per step, the noise twice where it is meant in the sense of Stratonovich."""
    return diffrax.Euler() if isinstance(flow, AbstractItoFlow) else diffrax.EulerHeun()


def refuse_other_sense(flow: AbstractFlow, solver: diffrax.AbstractSolver | None) -> None:
    """Raise `ValueError` for a solver that converges to another equation than the flow's."""
    if isinstance(flow, AbstractStratonovichFlow):
        if flow.only_ito:
            raise ValueError(f"{type(flow).__name__} cannot be solved in the sense of Stratonovich: {flow.only_ito}.")
        if solver is not None and not isinstance(solver, _STRATONOVICH):
            ito = ", or flow.to_ito() with Euler()" if isinstance(flow, CommonNoiseFlow) else ""
            raise ValueError(
                f"{type(flow).__name__} is meant in the sense of Stratonovich, for which {type(solver).__name__} is no "
                f"solver: Itô's drop the drift ½(DG)G of its noise, others lack what they need of the noise. Take one "
                f"of {_NAMES}{ito}."
            )
    elif isinstance(flow, AbstractItoFlow) and not (solver is None or isinstance(solver, diffrax.Euler)):
        adds = isinstance(solver, _STRATONOVICH)
        reason = "would add the drift ½(DG)G of its noise" if adds else "needs more than the increments of its noise"
        raise ValueError(
            f"{type(flow).__name__} is meant in the sense of Itô; {type(solver).__name__} {reason}. Take Euler()."
        )


def refuse_steps_within_knots(flow: AbstractNoisyFlow, clock: Clock | None) -> None:
    """Noise needs fixed steps; in the sense of Itô, steps from knot to knot: its increments within are not random."""
    name = type(flow).__name__
    if clock is None:
        raise ValueError(f"{name} moves by noise, which takes fixed steps: pass dt, or omit rtol and atol.")
    assert isinstance(flow.noise, AbstractPath)
    if isinstance(flow, AbstractItoFlow):
        _refuse_ends_off_knots(name, concrete(clock.end), concrete(flow.noise.grid))
    _refuse_steps_within_lines(flow, clock)


def _refuse_ends_off_knots(name: str, times: np.ndarray | None, knots: np.ndarray | None) -> None:
    if times is None or knots is None or knots.size < 2:
        return
    nearest = knots[np.clip(np.searchsorted(knots, times), 1, None).clip(max=knots.size - 1)]
    before = knots[np.clip(np.searchsorted(knots, times) - 1, 0, None)]
    gap = np.minimum(np.abs(times - nearest), np.abs(times - before))
    if gap.max() > 1e-3 * np.diff(knots).min():
        raise ValueError(
            f"steps of {name} must end at knots of its noise; the one at {times[gap.argmax()]:g} does not. Draw the "
            "noise on the times of the steps: realise(flow, key, times)."
        )


def _refuse_steps_within_lines(flow: AbstractNoisyFlow, clock: Clock) -> None:
    """Between its knots, and below the finest level of its clock, a Brownian path is a line.

    Increments within one have not their law. Steps that are longer need not end at knots where the sense is that of
    Stratonovich: the equation then follows the lines, and a step across a knot errs like one from knot to knot.
    """
    lengths, knots = concrete(clock.length), concrete(flow.noise.grid) if isinstance(flow.noise, AbstractPath) else None
    if lengths is None or lengths.size < 2:
        return
    typical = float(np.median(lengths[1:]))
    between = 0.0 if knots is None or knots.size < 2 else float(np.median(np.diff(knots)))
    cell = getattr(flow.noise, "cell", 0.0)
    line, advice = max(
        (between, "Draw it on the times of the steps: realise(flow, key, times)"),
        (cell, "Give it a smaller unit or a larger depth, such as Brownian(like, unit=1.0, depth=20)"),
    )
    if typical < (1 - 1e-3) * line:
        raise ValueError(
            f"the noise of {type(flow).__name__} is a line within every {line:g} of time, but the steps are "
            f"{typical:g}. {advice}."
        )
