"""One piece of one path of the moving-heads experiment: what is drawn, what is solved, what is kept."""

import functools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, ScalarLike

from .._types import Key, Tokens
from ..dynamics import AttentionFlow
from ..geometry import Sphere
from ..integrate import Euler, Solution, solve
from ..models import Heads, random_symmetric
from ..observables import (
    AbstractObservable,
    ClusterCount,
    Diameter,
    Dissipation,
    Energy,
    EnergyBalance,
    OrderParameter,
    Slope,
)
from ..paths import AbstractPath, OrnsteinUhlenbeck, Oscillating, phase_locked, phase_spread
from .unit import Arrays

if TYPE_CHECKING:
    from .moving_heads import MovingHeads

BALANCE = "balance"
PHASES = {"locked": phase_locked, "spread": phase_spread}
# Fixed numbers that keep the draws of one seed apart.
TOKENS, HEADS, PATHS = range(3)


def solve_chunk(spec: "MovingHeads", heads: int, path: int, chunk: int, before: Arrays | None) -> Arrays:
    """Follow the tokens over chunk `chunk` of [0, T] and return what is recorded there.

    `before` is the result of the chunk before; the first one starts from the drawn tokens. Accumulated terms start
    at zero in every chunk. A path that ended early stays blank.
    """
    flow = AttentionFlow(Sphere(spec.d), draw_weights(spec, heads, path))
    ended = before is not None and not np.isfinite(before["end"]).all()
    x0 = draw_tokens(spec) if before is None or ended else jnp.asarray(before["end"])
    # A path with knots is stepped on them; a smooth one at multiples of dt.
    dt = spec.dt if spec.weights == "oscillating" else None
    solution = solve(flow, x0, chunk_times(spec, chunk), dt=dt, solver=Euler(), observe=_observables(spec))
    arrays = _recorded(spec, path, chunk, solution)
    if before is None or not ended:
        return arrays
    blank = {name: np.full_like(values, np.nan) for name, values in arrays.items()}
    return blank | {"end_time": before["end_time"]}


def _recorded(spec: "MovingHeads", path: int, chunk: int, solution: Solution) -> Arrays:
    observed = dict(solution.observed)
    terms = observed.pop(BALANCE)._asdict() if BALANCE in observed else {}
    balance = {f"{BALANCE}_{name}": values for name, values in terms.items()}
    # The first time of a later chunk is the last one of the chunk before.
    fresh = slice(int(chunk > 0), None)
    arrays = {name: np.asarray(values)[fresh] for name, values in (observed | balance).items()}
    states = np.asarray(solution.states)
    if path == 0:
        arrays["tokens"] = states[fresh][np.isin(chunk_records(spec, chunk)[fresh], frame_records(spec))]
    return arrays | {"end": states[-1], "end_time": np.asarray(solution.end_time)}


def chunk_records(spec: "MovingHeads", chunk: int) -> np.ndarray:
    """Numbers of the recorded times of a chunk; it begins with the last one of the chunk before."""
    length = spec.records // spec.chunks
    return np.arange(chunk * length, (chunk + 1) * length + 1)


def frame_records(spec: "MovingHeads") -> np.ndarray:
    """Numbers of the recorded times at which tokens are kept: evenly spread ones and the snapshots."""
    even = np.linspace(0, spec.records, min(spec.frames, spec.records + 1)).round()
    snapshots = np.round(np.array(spec.snapshots) / spec.record_step)
    return np.union1d(even, snapshots).astype(int)


def times(spec: "MovingHeads", records: np.ndarray) -> np.ndarray:
    """Times of recorded numbers: step k is at k·dt, not at a sum of k roundings."""
    return records * spec.record_every * spec.dt


def chunk_times(spec: "MovingHeads", chunk: int):
    return jnp.asarray(times(spec, chunk_records(spec, chunk)))


def draw_tokens(spec: "MovingHeads") -> Tokens:
    """The start, the same for all paths and head counts: base points chosen uniformly, plus noise, retracted."""
    base = _pentagon() if spec.start == "pentagon" else np.concatenate([np.eye(spec.d), -np.eye(spec.d)])
    x = _scatter(_key(spec, TOKENS), jnp.asarray(base), spec.start_noise, spec.n)
    return Sphere(spec.d).retract(x.astype(spec.dtype))


def draw_weights(spec: "MovingHeads", heads: int, path: int) -> AbstractPath:
    """The heads as a function of time. D(0) depends on (seed, heads), the noise on (seed, path) beside its shape."""
    D = random_symmetric(_key(spec, HEADS, heads), h=heads, d=spec.d)
    start = Heads.tied(jnp.asarray(D, spec.dtype), sign=-1)
    if spec.weights == "oscillating":
        return Oscillating(start, PHASES[spec.phases](heads))
    process = OrnsteinUhlenbeck(
        start=start, mean=spec.mean * jnp.eye(spec.d), rate=spec.rate, noise=spec.noise, unit=noise_unit(spec.dt)
    )
    return process.sample(_key(spec, PATHS, path), jnp.arange(spec.steps + 1) * spec.dt)


def noise_unit(dt: float) -> float:
    """The interval of the noise clock, dt·2^j near 1/2: then dt, dt/2, … refine one and the same path."""
    return float(np.ldexp(dt, int(np.ceil(np.log2(0.5 / dt)))))


def _key(spec: "MovingHeads", *numbers: int) -> Key:
    key = jr.key(spec.seed)
    for number in numbers:
        key = jr.fold_in(key, number)
    return key


@functools.partial(jax.jit, static_argnames="n")
def _scatter(key: Key, base: Float[Array, "b d"], noise: ScalarLike, n: int) -> Tokens:
    """`n` of the base points with Gaussian noise. One compiled call: alone, each draw would be compiled."""
    choice, shift = jr.split(key)
    points = base[jr.randint(choice, (n,), 0, len(base))]
    return points + noise * jr.normal(shift, points.shape)


def _pentagon() -> np.ndarray:
    angles = 2 * np.pi * np.arange(5) / 5
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def _observables(spec: "MovingHeads") -> dict[str, AbstractObservable]:
    known = {
        "slope": Slope(),
        "dissipation_rate": Dissipation(),
        "energy": Energy(),
        BALANCE: EnergyBalance(),
        "clusters": ClusterCount(spec.radius),
        "order_parameter": OrderParameter(),
        "diameter": Diameter(),
    }
    return {name: known[name] for name in spec.quantities}
