"""Minimising movements: the gradient flow of the energy by proximal steps (Jordan, Kinderlehrer, Otto)."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from .._checks import concrete, refuse_other_type
from .._types import Scalar, ScalarLike, Times, Tokens, as_float
from ..dynamics import AbstractHeadsFlow, refuse_untied
from ..integrate import Solution, Status, check_observe, check_start, refuse_outside_noise
from ..models import Padding, TiedHeads
from ..observables import AbstractIntegral, Energy
from ..paths import find_paths
from ._minimise import minimise, refuse_other_tolerance


def jko_flow(
    flow: AbstractHeadsFlow,
    x0: Tokens,
    tau: ArrayLike,
    steps: int,
    *,
    t0: ScalarLike = 0.0,
    observe: Mapping[str, Callable] | None = None,
    states: bool = True,
    tolerance: ArrayLike | None = None,
    max_iterations: int = 1000,
) -> Solution:
    """Follow the energy of `flow` by `steps` proximal steps of length `tau` from `x0` `(n, d)`, at ts = t0 + k·tau.

    x^{k+1} minimises E(x, t_{k+1}) + (1/n) Σ_i b̂(x_i^k) d(x_i, x_i^k)²/(2·tau), found by descending from x^k; b̂ is
    the effective mobility of the heads at t_{k+1} and tokens x^k, d the geodesic distance. Heads with sign +1, whose
    flow ascends, maximise E with the second term subtracted. As tau → 0 it converges to `MobilityFlow` at order 1. For
    weights that do not move the energy never rises (sign -1), for any tau.

    Each minimiser is found by L-BFGS until steps are below `tolerance` relative to its velocity (1e-8 in float64,
    1e-4 in float32); one that takes more than `max_iterations` ends the run with status `solver_failed`. Works under
    `jit`; derivatives are those of the minimisers (implicit): forward, reverse, and forward over reverse. `observe`
    names functions of (t, x, flow).

    Raises `ValueError` for a tau that is not positive, heads that are not tied, observables that a solver has to
    integrate, and as `solve` does. Source: arXiv:2605.18870, its minimising movements.
    """
    x0 = as_float(x0)
    _check_numerics(steps, observe, tolerance, max_iterations)
    _check(flow, x0, tau, t0)
    if tolerance is None:
        tolerance = 1e-8 if x0.dtype == jnp.float64 else 1e-4
    tau, tolerance = as_float(tau), as_float(tolerance)
    ts = as_float(t0) + tau * jnp.arange(steps + 1)
    refuse_outside_noise(find_paths(flow), ts)
    return _movements(flow, x0, ts, tau, dict(observe or {}), tolerance, states=states, max_iterations=max_iterations)


@eqx.filter_jit
def _movements(
    flow: AbstractHeadsFlow,
    x0: Tokens,
    ts: Times,
    tau: Scalar,
    observe: dict[str, Callable],
    tolerance: Scalar,
    *,
    states: bool,
    max_iterations: int,
) -> Solution:
    x0 = flow.manifold.retract(flow.present(x0))

    def save(t: Scalar, x: Tokens) -> tuple:
        return (x if states else None), {name: function(t, x, flow) for name, function in observe.items()}

    def step(carry: tuple, t: Scalar):
        x, status, end_time = carry
        new, code, iterations = proximal_step(flow, t, x, tau.astype(float), tolerance, max_iterations)
        status = jnp.where(status == 0, code, status)
        good = status == 0
        x = jnp.where(good, new, x)
        saved = jax.tree.map(lambda leaf: jnp.where(good, leaf, jnp.nan), save(t, x))
        return (x, status, jnp.where(good, t, end_time)), (saved, jnp.where(good, iterations, 0))

    start = (x0, Status.of("successful").code, ts[0])
    (_, status, end_time), (saved, iterations) = jax.lax.scan(step, start, ts[1:])
    first = save(ts[0], x0)
    trajectory, observed = jax.tree.map(lambda a, b: jnp.concatenate([jnp.asarray(a, b.dtype)[None], b]), first, saved)
    stats = {"num_steps": jnp.sum(iterations > 0), "num_iterations": jnp.sum(iterations)}
    return Solution(ts, trajectory, observed, Status(status), end_time, stats)


def proximal_step(
    flow: AbstractHeadsFlow, t: Scalar, x: Tokens, tau: Scalar, tolerance: Scalar, max_iterations: int
) -> tuple[Tokens, Array, Array]:
    """The minimiser, the code of a `Status`, and the number of iterations.

    The unknown z is the velocity of the geodesics from `x`, in units in which the proximal term is ½tau|z|²: divided
    by tau, the objective has the Hessian I + O(tau). The normal part of z moves nothing and costs the same, so it
    stays zero and the Hessian regular. It is found in JAX's default floating dtype, the one that L-BFGS works in.
    """
    dtype, x = x.dtype, x.astype(float)
    heads = flow.heads(t, x)
    assert isinstance(heads, TiedHeads)
    tilt = flow.mass(heads, flow.measure(x))
    cost = tilt.token_weights * tilt.effective_mobility
    scale = jnp.where(cost > 0, jax.lax.rsqrt(jnp.where(cost > 0, cost, 1)), 0)[:, None]
    before = tilt.energy

    def end(z: Tokens) -> Tokens:
        return flow.manifold.exp(x, tau * scale * z)

    def objective(z: Tokens) -> Scalar:
        gain = heads.sign * (Energy()(t, end(z), flow) - before)
        return 0.5 * jnp.sum(z**2) - gain / tau

    found = minimise(
        objective,
        jnp.zeros_like(x),
        tolerance=tolerance,
        rounding=4 * jnp.finfo(x.dtype).eps * before / tau,
        max_iterations=max_iterations,
    )
    new = end(found.at)
    code = jnp.where(found.converged, Status.of("successful").code, Status.of("solver_failed").code)
    code = jnp.where(jnp.isfinite(new).all(), code, Status.of("non_finite").code)
    return new.astype(dtype), code, found.evaluations


def _check(flow: Any, x0: Tokens, tau: Any, t0: Any) -> None:
    refuse_other_type(flow, "flow", AbstractHeadsFlow, "a flow of attention heads such as MobilityFlow")
    value = concrete(tau)
    if value is not None and not (value.ndim == 0 and np.isfinite(value) and value > 0):
        raise ValueError(f"tau must be one positive finite number; got {value}.")
    start = concrete(t0)
    if start is not None and not (start.ndim == 0 and np.isfinite(start)):
        raise ValueError(f"t0 must be one finite time; got {t0!r}.")
    if not isinstance(flow.mask, Padding | None):
        raise ValueError(f"the flow's mask must be Padding or None; under {type(flow.mask).__name__} it has no energy.")
    check_start(flow, x0)
    refuse_untied(eqx.filter_eval_shape(flow.heads, as_float(t0), x0), "jko_flow")


def _check_numerics(steps: Any, observe: Any, tolerance: Any, max_iterations: Any) -> None:
    for name, count in (("steps", steps), ("max_iterations", max_iterations)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"{name} must be a positive integer; got {count!r}.")
    refuse_other_tolerance(tolerance)
    for name, observable in check_observe(observe).items():
        if isinstance(observable, AbstractIntegral):
            raise ValueError(
                f"observe[{name!r}] must have a value at each step; got {observable!r:.80}, which only `solve` can "
                "integrate."
            )
