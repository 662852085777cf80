"""A whole run: 200 steps of a fourth-order Runge–Kutta method, n = 1024, h = 8, d = 3, float32.

`solve` against the same steps written by hand around the same flow (what `solve` adds), and against torchdiffeq's rk4
with PyTorch's attention (what it saves).
"""

from typing import ClassVar

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bench_drift import problem
from race import finish, race

import transformer_flows as tfl

torch = pytest.importorskip("torch")
torchdiffeq = pytest.importorskip("torchdiffeq")

N, D, H, T, DT = 1024, 3, 8, 10.0, 0.05
STEPS = round(T / DT)
LARGEST_OVERHEAD = 0.15


class RK4(diffrax.AbstractERK):
    """The classical method: four evaluations per step, as torchdiffeq's rk4."""

    tableau: ClassVar[diffrax.ButcherTableau] = diffrax.ButcherTableau(
        c=np.array([0.5, 0.5, 1.0]),
        a_lower=(np.array([0.5]), np.array([0.0, 0.5]), np.array([0.0, 0.0, 1.0])),
        b_sol=np.array([1, 2, 2, 1]) / 6,
        b_error=np.zeros(4),
    )
    interpolation_cls: ClassVar = diffrax.ThirdOrderHermitePolynomialInterpolation.from_k

    def order(self, terms):
        return 4


def by_hand(flow: tfl.AttentionFlow, x0: jax.Array):
    """A scan over the classical step with a retraction after each."""

    def step(x, t):
        k1 = flow(t, x)
        k2 = flow(t + DT / 2, x + DT / 2 * k1)
        k3 = flow(t + DT / 2, x + DT / 2 * k2)
        k4 = flow(t + DT, x + DT * k3)
        return flow.manifold.retract(x + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)), None

    times = DT * jnp.arange(STEPS, dtype=x0.dtype)
    run = jax.jit(lambda x: jax.lax.scan(step, x, times)[0])
    return lambda: run(x0)


def by_torchdiffeq(x, score, value):
    """torchdiffeq's fixed-step rk4 on PyTorch's attention; it has no retraction."""
    x, score, value = map(torch.tensor, (x, score, value))

    def velocity(t, x):
        queries = torch.einsum("hij,nj->hni", score, x).contiguous()[None]
        keys = x.expand(1, H, N, D).contiguous()
        mean = torch.nn.functional.scaled_dot_product_attention(queries, keys, keys, scale=1.0)[0]
        v = torch.einsum("hij,hnj->hni", value, mean).mean(0)
        return v - (v * x).sum(-1, keepdim=True) * x

    def run():
        with torch.no_grad():
            ts = torch.tensor([0.0, T])
            return torchdiffeq.odeint(velocity, x, ts, method="rk4", options={"step_size": DT})[-1]

    return run


def test_solve(benchmark):
    x, score, value, _ = problem(N, D, H)
    score, value = score / 2, value / 2  # slow enough for the methods to agree at the end
    flow, x0 = tfl.AttentionFlow(tfl.Sphere(D), tfl.Heads(score, value)), jnp.asarray(x)
    ts = jnp.array([0.0, T], "float32")
    calls = {
        "solve": lambda: tfl.solve(flow, x0, ts, dt=DT, solver=RK4()).states[-1],
        "scan by hand": by_hand(flow, x0),
        "torchdiffeq": by_torchdiffeq(x, score, value),
    }
    ends = {name: np.asarray(finish(call())) for name, call in calls.items()}
    np.testing.assert_allclose(ends["solve"], ends["scan by hand"], atol=1e-3)
    np.testing.assert_allclose(ends["torchdiffeq"], ends["scan by hand"], atol=1e-2)

    times = race(calls, seconds=30.0, rounds=5)
    benchmark.extra_info |= times
    benchmark.pedantic(lambda: finish(calls["solve"]()), rounds=2)
    overhead = times["solve"] / times["scan by hand"] - 1
    print("\n\n| | s | against solve |\n|---|---|---|")
    print("\n".join(f"| {name} | {s:.2f} | {s / times['solve']:.2f} |" for name, s in times.items()))
    print(f"\nsolve costs {overhead:+.1%} over the scan by hand.")
    assert overhead < LARGEST_OVERHEAD
