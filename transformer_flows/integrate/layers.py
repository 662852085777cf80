"""`run_layers`: a network of finitely many layers, with the solution and the observables of `solve`."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._checks import refuse_other_keys, refuse_other_type
from .._types import Key, Tokens, as_float
from ..dynamics import Network
from ._observe import Observers, check_observe
from ._start import check_start
from .solution import Solution, Status


def run_layers(
    network: Network,
    x0: Tokens,
    key: Key,
    *,
    first: int = 0,
    last: int | None = None,
    record_every: int = 1,
    observe: Mapping[str, Callable] | None = None,
    states: bool = True,
) -> Solution:
    """Tokens `(n, d)` through the layers `first` … `last` − 1 of a network (None: to its end), recorded at intervals.

    `ts` are the depths ℓ T/L of the layers recorded: the first, and every `record_every` after it. The weights of layer
    ℓ are drawn from (key, ℓ) when it is reached and forgotten after it, so a run may be made in pieces. `observe` and
    `states` are those of `solve`, observables being called with the network's flow; integrals add up T/L times their
    rate at the start of each layer. A state that is not finite ends the run with status `non_finite`. Derivatives of
    every mode; in reverse mode a recorded interval is recomputed.

    Raises `ValueError` as `solve` does, and for layers that do not exist or are not a multiple of `record_every`.
    """
    refuse_other_type(network, "network", Network, "a Network")
    refuse_other_keys(key, "key", many=False)
    observe = check_observe(observe)
    last = network.layers if last is None else last
    for name, count in (("first", first), ("last", last), ("record_every", record_every)):
        if isinstance(count, bool) or not isinstance(count, int):
            raise ValueError(f"{name} must be an integer; got {count!r}.")
    if not 0 <= first < last <= network.layers:
        raise ValueError(f"layers {first} to {last} must be some of the {network.layers} layers of the network.")
    if record_every < 1 or (last - first) % record_every:
        raise ValueError(f"record_every must divide the {last - first} layers to be run; got {record_every}.")
    x0 = as_float(x0)
    check_start(network.flow, x0)
    records = (last - first) // record_every
    return _run(network, x0, key, first, observe, states=states, records=records, every=record_every)


@eqx.filter_jit
def _run(
    network: Network,
    x0: Tokens,
    key: Key,
    first: Any,
    observe: dict[str, Callable],
    *,
    states: bool,
    records: int,
    every: int,
) -> Solution:
    flow = network.flow
    x0 = flow.manifold.retract(flow.present(x0))
    start = _depth(network, first)
    observers = Observers(observe, states, flow, start, x0)
    step = network.step.astype(x0.dtype)

    def layer(carry: tuple, number: Any) -> tuple[tuple, None]:
        x, integrals, reached = carry
        t0, t1 = _depth(network, number), _depth(network, number + 1)
        rates = observers.rates(t0, x, flow)
        new = network(key, number, x)
        integrals = jax.tree.map(lambda total, rate: total + step * rate, integrals, rates)
        integrals = observers.add_jumps(integrals, t0, t1, x, new, flow)
        good = (reached == number) & jnp.isfinite(new).all()
        return (jnp.where(good, new, x), integrals, jnp.where(good, number + 1, reached)), None

    @jax.checkpoint
    def interval(carry: tuple, number: Any) -> tuple[tuple, Any]:
        numbers = number + jnp.arange(every)
        (x, integrals, reached), _ = jax.lax.scan(layer, carry, numbers)
        saved = observers.save(_depth(network, number + every), x, integrals, flow)
        blank = lambda leaf: jnp.where(reached == number + every, leaf, jnp.nan)
        return (x, integrals, reached), jax.tree.map(blank, saved)

    zeros = observers.zeros(start, x0, flow)
    saved_first = observers.save(start, x0, zeros, flow)
    numbers = first + every * jnp.arange(records)
    (_, _, reached), saved = jax.lax.scan(interval, (x0, zeros, jnp.asarray(first)), numbers)
    trajectory, observed = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), saved_first, saved)
    done = reached == first + records * every
    status = jnp.where(done, Status.of("successful").code, Status.of("non_finite").code)
    ts = _depth(network, first + every * jnp.arange(records + 1))
    return Solution(ts, trajectory, observed, Status(status), _depth(network, reached), {"num_steps": reached - first})


def _depth(network: Network, layer: Any) -> Any:
    """Of one or more layers, on a clock that does not depend on the dtype of the tokens."""
    return network.depth(layer).astype(float)
