"""How a solve ends: statuses, NaN after the end, refusals that name the argument, memory that is not spent."""

import subprocess
import sys

import diffrax
import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl

from ..problems import LinearFlow, MultiHead, PowerFlow

PROBLEM = MultiHead()
SPHERE = tfl.Sphere(3)


class First(tfl.AbstractObservable):
    """The first coordinate of the first token."""

    def __call__(self, t, x, flow):
        return x[0, 0]


def test_fixed_steps_that_leave_the_finite_numbers_say_so():
    """Fault 12: constant steps never run through a singularity and report success."""
    flow = PowerFlow(tfl.Euclidean(1))
    ts = jnp.linspace(0, 2, 21)
    sol = tfl.solve(flow, jnp.ones((1, 1)), ts, dt=0.05, observe={"first": First()})
    assert sol.status == "non_finite" and str(sol.status) == "non_finite"
    reached = np.asarray(ts) <= float(sol.end_time)
    assert 1.0 < sol.end_time < 2.0
    assert np.isfinite(sol.states[reached]).all() and np.isnan(sol.states[~reached]).all()
    assert np.isfinite(sol.observed["first"][reached]).all() and np.isnan(sol.observed["first"][~reached]).all()


@pytest.mark.parametrize("max_steps, status", [(20, "max_steps"), (100_000, "step_underflow")])
def test_adaptive_steps_stop_early_with_a_status(max_steps, status):
    """Faults 11, 12, 16: no exception, NaN (not inf) after the end, everything before it kept and right."""
    ts = jnp.linspace(0, 2, 41)
    sol = tfl.solve(PowerFlow(tfl.Euclidean(1)), jnp.ones((1, 1)), ts, max_steps=max_steps, rtol=1e-9, atol=1e-9)
    assert sol.status == status
    assert sol.status != "successful"
    reached = np.asarray(ts) <= float(sol.end_time)
    assert 0.1 < sol.end_time <= 1.0 + 1e-6
    before = np.asarray(ts) < min(1.0, float(sol.end_time))
    np.testing.assert_allclose(sol.states[before, 0, 0], 1 / (1 - ts[before]), rtol=1e-5)
    assert np.isnan(sol.states[~reached]).all()


def test_nan_field_stops_at_once():
    """Fault 13: a field that is NaN from the start ends the solve, it does not loop for ever."""
    flow = LinearFlow(SPHERE, jnp.full((3, 3), jnp.nan))
    sol = tfl.solve(flow, PROBLEM.x0, [0.0, 1.0])
    assert sol.status != "successful"
    assert sol.end_time == 0 and np.isnan(sol.states[1]).all() and np.isfinite(sol.states[0]).all()


def test_long_oscillation_is_not_cut_short():
    """Fault 11: T = 1000 at rtol 1e-8 needs more than the usual cap of 4096 steps."""
    flow = LinearFlow(tfl.Sphere(2), jnp.array([[0.0, -3.0], [3.0, 0.0]]))
    x0 = jnp.array([[1.0, 0.0]])
    sol = tfl.solve(flow, x0, [0.0, 1000.0], rtol=1e-8, atol=1e-8)
    assert sol.status == "successful" and sol.stats["num_steps"] > 4096
    assert np.abs(sol.states[-1] - flow.exact(1000.0, x0)).max() < 1e-4


GOOD = {"x0": PROBLEM.x0, "ts": [0.0, 1.0]}


@pytest.mark.parametrize(
    "change, words",
    [
        ({"x0": PROBLEM.x0.at[2, 1].set(jnp.nan)}, ["x0", "token 2"]),
        ({"x0": PROBLEM.x0.at[1].set(0.0)}, ["token 1", "retract"]),
        ({"x0": 2 * PROBLEM.x0}, ["token 0", "Sphere(3)"]),
        ({"x0": PROBLEM.x0[:, :2]}, ["x0", "(4, 2)", "(n, 3)"]),
        ({"x0": PROBLEM.x0[:0]}, ["x0", "n >= 1"]),
        ({"ts": [0.0]}, ["ts", "two times"]),
        ({"ts": [0.0, 1.0, 1.0]}, ["ts", "increase", "ts[1]"]),
        ({"ts": [0.0, np.inf]}, ["ts", "finite"]),
        ({"dt": 0.0}, ["dt", "positive"]),
        ({"dt": np.nan}, ["dt", "positive"]),
        ({"dt": 0.1, "rtol": 1e-3}, ["dt", "rtol"]),
        ({"rtol": -1.0}, ["rtol", "positive"]),
        ({"dt": 1e-12}, ["dt", "steps"]),
        ({"max_steps": 0}, ["max_steps", "positive integer"]),
        ({"solver": diffrax.Euler()}, ["Euler", "no error estimate", "dt"]),
        ({"x0": PROBLEM.x0.astype("float16")}, ["float16", "dt"]),
    ],
    ids=lambda v: ",".join(v) if isinstance(v, dict) else "",
)
def test_wrong_arguments_are_refused_by_name(change, words):
    arguments = GOOD | change
    with pytest.raises(ValueError) as error:
        tfl.solve(PROBLEM.flow, arguments.pop("x0"), arguments.pop("ts"), **arguments)
    for word in words:
        assert word in str(error.value)


def test_a_process_that_is_not_drawn_is_refused():
    weights = tfl.OrnsteinUhlenbeck(start=tfl.Heads.tied(jnp.eye(3), sign=-1), mean=jnp.eye(3), rate=1.0, noise=1.0)
    flow = tfl.AttentionFlow(SPHERE, weights)
    with pytest.raises(ValueError, match=r"not drawn yet, OrnsteinUhlenbeck.*realise"):
        tfl.solve(flow, PROBLEM.x0, [0.0, 1.0])
    drawn = tfl.realise(flow, jr.key(0), jnp.linspace(0.0, 1.0, 11))
    with pytest.raises(ValueError, match="smoothed"):
        tfl.solve(drawn, PROBLEM.x0, [0.0, 1.0], rtol=1e-3)
    assert tfl.solve(drawn, PROBLEM.x0, [0.0, 1.0]).stats["num_steps"] == 10


def test_noise_is_not_invented_outside_of_the_times_on_which_it_was_drawn():
    weights = tfl.OrnsteinUhlenbeck(start=tfl.Heads.tied(jnp.eye(3), sign=-1), mean=jnp.eye(3), rate=1.0, noise=1.0)
    flow = tfl.realise(tfl.AttentionFlow(SPHERE, weights), jr.key(0), jnp.linspace(0.0, 1.0, 5))
    for ts in ([0.0, 3.0], [2.0, 4.0]):
        with pytest.raises(ValueError, match=r"drawn, \[0, 1\]; got"):
            tfl.solve(flow, PROBLEM.x0, ts)
        with pytest.raises(ValueError, match="reach as far"):
            tfl.solve(flow, PROBLEM.x0, ts, dt=0.5)


def test_a_flow_of_padding_alone_is_refused():
    flow = tfl.AttentionFlow(SPHERE, PROBLEM.heads, mask=tfl.Padding(jnp.zeros(4, bool)))
    with pytest.raises(ValueError, match="at least one token"):
        tfl.solve(flow, PROBLEM.x0, [0.0, 1.0])


WRONG_TYPES = """
import jax.numpy as jnp, transformer_flows as tfl
sphere, heads = tfl.Sphere(3), tfl.Heads.identity(3, beta=1.0)
x0, ts, flow = jnp.eye(3), [0.0, 1.0], tfl.AttentionFlow(sphere, heads)

class Still(tfl.AbstractFlow):
    manifold: tfl.Sphere = sphere

    def __call__(self, t, x):
        return 0 * x

for name, call in {
    "manifold": lambda: tfl.AttentionFlow(3, heads),
    "kind": lambda: tfl.AttentionFlow(sphere, heads, "softmax"),
    "mask": lambda: tfl.AttentionFlow(sphere, heads, mask=tfl.Causal),
    "backend": lambda: tfl.AttentionFlow(sphere, heads, backend=128),
    "existing": lambda: tfl.Padding([1, 1, 0]),
    "flow": lambda: tfl.solve(lambda t, x: -x, x0, ts),
    "solver": lambda: tfl.solve(flow, x0, ts, solver="euler"),
    "observe": lambda: tfl.solve(flow, x0, ts, observe=tfl.Energy()),
    "observe['a']": lambda: tfl.solve(flow, x0, ts, observe={"a": tfl.Energy}),
    "Energy needs a flow of attention heads": lambda: tfl.solve(Still(), x0, ts, observe={"a": tfl.Energy()}),
    "in_axes": lambda: tfl.solve_ensemble(flow, x0[None], ts, in_axes=(None, 1)),
    "the weights must be a path of Heads": lambda: tfl.AttentionFlow(sphere, tfl.Constant(5.0))(0.0, x0),
    "the weights are heads in R^2": lambda: tfl.AttentionFlow(
        sphere, tfl.Constant(tfl.Heads.identity(2, beta=1.0))
    )(0.0, x0),
}.items():
    try:
        call()
    except ValueError as error:
        assert str(error).startswith(name), (name, error)
    else:
        raise AssertionError(name)
sol = tfl.solve(flow, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], ts, dt=0.5, observe={"first": lambda t, x, flow: x[0, 0]})
assert sol.status == "successful" and sol.observed["first"][0] == 1
"""


def test_arguments_of_wrong_types_are_named():
    """In a process of its own: here the annotations are checked first."""
    done = subprocess.run([sys.executable, "-c", WRONG_TYPES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_unknown_status_word_is_an_error():
    with pytest.raises(ValueError, match="no status is called"):
        tfl.Status.of("successful") == "sucessful"  # noqa: B015


def test_observables_alone_store_no_tokens():
    """Fault 16: with states=False the compiled solve has no buffer of tokens over time."""
    n, t = 512, 400
    x0, ts = SPHERE.uniform(jr.key(0), n), jnp.linspace(0.0, 1.0, t)
    flow = LinearFlow(SPHERE, jnp.eye(3))

    def memory(states, dt):
        run = eqx.filter_jit(lambda x: tfl.solve(flow, x, ts, dt=dt, states=states, observe={"first": First()}))
        stats = run.lower(x0).compile().compiled.memory_analysis()
        return stats.temp_size_in_bytes + stats.output_size_in_bytes

    tokens = n * 3 * 8
    for dt in (float(ts[1]), None):
        assert memory(True, dt) > t * tokens
        assert memory(False, dt) < 0.3 * t * tokens
