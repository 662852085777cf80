"""An ensemble under common noise: 64 paths of 200 Euler–Heun steps, n = 256, d = 8, h = 4, float32.

`solve_ensemble` against the same steps written by hand around the same flow and field (what it adds), and against
torchsde's Euler–Heun with PyTorch's attention (what it saves). The noise of torchsde is the simplest there is, one
Brownian motion in R^d for all tokens; the library is timed with that too (`constant`), and with 45 modes of a kernel.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from bench_drift import problem
from race import finish, race

import transformer_flows as tfl

torch = pytest.importorskip("torch")
torchsde = pytest.importorskip("torchsde")

N, D, H, T, STEPS, PATHS = 256, 8, 4, 5.0, 200, 64
SIGMA = 0.3
LARGEST_OVERHEAD = 0.2
TS = jnp.linspace(0.0, T, STEPS + 1, dtype="float32")
ENDS = jnp.array([0.0, T], "float32")


def noisy(score, value, field) -> tfl.CommonNoiseFlow:
    flow = tfl.AttentionFlow(tfl.Sphere(D), tfl.Heads(jnp.asarray(score), jnp.asarray(value)))
    return tfl.CommonNoiseFlow(flow, field)


def by_hand(flow: tfl.CommonNoiseFlow, x0: jax.Array, keys: jax.Array):
    """A scan over Euler–Heun steps with a retraction after each, one path after the other."""
    h, sphere = T / STEPS, flow.manifold

    def path(key):
        field = flow.field.prepared()
        increments = jnp.diff(tfl.realise(flow, key, TS).noise.values, axis=0)

        def step(x, now):
            t, dw = now
            moved = sphere.project(x, field(x, dw))
            again = sphere.project(x + moved, field(x + moved, dw))
            return sphere.retract(x + h * flow.flow(t, x) + (moved + again) / 2), None

        return jax.lax.scan(step, x0, (TS[:-1], increments))[0]

    run = jax.jit(lambda keys: jax.lax.map(path, keys))
    return lambda: run(keys)


def by_torchsde(x, score, value):
    """All paths as one batch; the state is flat, and the noise general: a matrix (N·D, D) for every path."""
    score, value = map(torch.tensor, (score, value))

    class Flow(torch.nn.Module):
        sde_type, noise_type = "stratonovich", "general"

        def f(self, t, y):
            x = y.reshape(-1, N, D)
            queries = torch.einsum("hij,enj->ehni", score, x).contiguous()
            keys = x[:, None].expand(-1, H, N, D).contiguous()
            mean = torch.nn.functional.scaled_dot_product_attention(queries, keys, keys, scale=1.0)
            v = torch.einsum("hij,ehnj->ehni", value, mean).mean(1)
            return (v - (v * x).sum(-1, keepdim=True) * x).reshape(y.shape)

        def g(self, t, y):
            x = y.reshape(-1, N, D)
            return (SIGMA * (torch.eye(D) - x[..., :, None] * x[..., None, :])).reshape(-1, N * D, D)

    start, times = torch.tensor(x).reshape(1, -1).expand(PATHS, -1).contiguous(), torch.tensor([0.0, T])

    def run():
        with torch.no_grad():
            return torchsde.sdeint(Flow(), start, times, method="euler_heun", dt=T / STEPS)[-1]

    return run


def test_noise(benchmark):
    x, score, value, _ = problem(N, D, H)
    score, value = score / 2, value / 2
    x0, keys = jnp.asarray(x), jr.split(jr.key(0), PATHS)
    kernel = tfl.theory.ActivationKernel(jnp.tanh, D, 1 / D, 0.01, 0.01)
    modes = noisy(score, value, tfl.GaussianField(kernel, tfl.Monomials(2)))
    one = tfl.theory.ActivationKernel(lambda z: 0 * z, D, 1 / D, 0.0, SIGMA**2)
    constant = noisy(score, value, tfl.GaussianField(one, tfl.RandomFeatures(jr.key(0), D, 1)))
    solve = lambda flow: lambda: tfl.solve_ensemble(flow, x0, ENDS, keys, dt=T / STEPS).states[:, -1]
    calls = {
        "solve_ensemble, 45 modes": solve(modes),
        "by hand, 45 modes": by_hand(modes, x0, keys),
        "solve_ensemble, constant": solve(constant),
        "by hand, constant": by_hand(constant, x0, keys),
        "torchsde, constant": by_torchsde(x, score, value),
    }
    for kind in ("45 modes", "constant"):
        ends = [np.asarray(finish(calls[f"{maker}, {kind}"]())) for maker in ("solve_ensemble", "by hand")]
        np.testing.assert_allclose(*ends, atol=2e-3)

    times = race(calls, seconds=40.0, rounds=5)
    benchmark.extra_info |= times
    benchmark.pedantic(lambda: finish(calls["solve_ensemble, constant"]()), rounds=1)
    print("\n\n| | s |\n|---|---|")
    print("\n".join(f"| {name} | {s:.2f} |" for name, s in times.items()))
    for kind in ("45 modes", "constant"):
        overhead = times[f"solve_ensemble, {kind}"] / times[f"by hand, {kind}"] - 1
        print(f"\nsolve_ensemble costs {overhead:+.1%} over the scan by hand ({kind}).")
        assert overhead < LARGEST_OVERHEAD
