"""Checks and timings for an accelerator, in one script of a few minutes: `python benchmarks/gpu.py [--small]`.

Every section prints its own table and stands alone: one that fails is reported at the end, after the others. `--small`
takes sizes with which the script can be tried on a CPU.
"""

import argparse
import sys
import time
import traceback
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import transformer_flows as tfl

try:
    from baselines import torch, torch_sdpa
except ImportError:
    torch = None

SMALL = False


def timed(call: Callable, rounds: int = 5) -> float:
    """Least seconds of a call, after one untimed call that compiles."""
    jax.block_until_ready(call())
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        jax.block_until_ready(call())
        best = min(best, time.perf_counter() - start)
    return best


def problem(n: int, h: int, d: int, dtype: str = "float32"):
    """Tokens on the sphere, score and value matrices, a cotangent."""
    keys = jr.split(jr.key(0), 4)
    x = tfl.Sphere(d).uniform(keys[0], n).astype(dtype)
    score, value = (2 * jr.normal(k, (h, d, d), dtype) for k in keys[1:3])
    return x, score, value, jr.normal(keys[3], (n, d), dtype)


def drift(backend: tfl.AbstractBackend | None) -> Callable:
    def f(x, score, value):
        return tfl.AttentionFlow(tfl.Sphere(x.shape[-1]), tfl.Heads(score, value), backend=backend)(0.0, x)

    return f


def drift_and_gradient(backend: tfl.AbstractBackend | None) -> Callable:
    def f(x, score, value, c):
        out, pullback = jax.vjp(drift(backend), x, score, value)
        return out, pullback(c)

    return jax.jit(f)


def equality() -> None:
    """Backends on this device in both precisions against Dense on the host in float64."""
    n, h, d = (512, 2, 3) if SMALL else (4096, 4, 8)
    reference = problem(n, h, d, "float64")
    with jax.default_device(jax.devices("cpu")[0]):
        host = [jnp.asarray(np.asarray(a)) for a in reference]
        want = jax.tree.map(np.asarray, drift_and_gradient(tfl.Dense())(*host))
    print("| backend | dtype | drift error | gradient error |\n|---|---|---|---|")
    worst = {"float32": 0.0, "float64": 0.0}
    for backend in (tfl.Dense(), tfl.Blockwise(block=256), tfl.Blockwise(block=2048)):
        for dtype in worst:
            out, gradients = drift_and_gradient(backend)(*(a.astype(dtype) for a in reference))
            errors = [_error(out, want[0]), max(map(_error, gradients, want[1]))]
            worst[dtype] = max(worst[dtype], *errors)
            print(f"| {backend} | {dtype} | {errors[0]:.1e} | {errors[1]:.1e} |")
    assert worst["float32"] < 2e-5, "single precision is off: are products done in TF32?"
    assert worst["float64"] < 1e-11


def _error(got, want) -> float:
    return float(np.abs(np.asarray(got, "float64") - want).max() / np.abs(want).max())


def speed() -> None:
    """Drift, and drift with gradient, of the chosen backend and others."""
    sizes = [(512, 2, 3)] if SMALL else [(1024, 8, 3), (4096, 8, 3), (4096, 8, 64), (16384, 8, 3), (65536, 8, 3)]
    print("| n | h | d | method | drift, ms | with gradient, ms | peak MB of the gradient |\n" + "|---" * 7 + "|")
    for n, h, d in sizes:
        x, score, value, c = problem(n, h, d)
        platform = jax.devices()[0].platform
        chosen = tfl.models.choose_backend(n=n, h=h, d=d, platform=platform)
        rivals = {f"chosen: {chosen}": chosen} | {
            f"Blockwise({block})": tfl.Blockwise(block=block) for block in (512, 2048, 8192) if block <= h * n
        }
        for name, backend in rivals.items():
            _our_row(name, backend, (x, score, value, c))
        if torch is not None:
            _torch_row(n, h, d, (x, score, value, c))


def _our_row(name: str, backend: tfl.AbstractBackend, arrays) -> None:
    x, score, value, c = arrays
    (n, d), h = x.shape, len(score)
    forward, both = jax.jit(drift(backend)), drift_and_gradient(backend)
    memory = both.lower(x, score, value, c).compile().memory_analysis().temp_size_in_bytes
    times = [timed(lambda: forward(x, score, value), 3), timed(lambda: both(x, score, value, c), 3)]
    print(f"| {n} | {h} | {d} | {name} | {times[0] * 1e3:.2f} | {times[1] * 1e3:.2f} | {memory / 1e6:.0f} |")


def _torch_row(n: int, h: int, d: int, arrays) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sdpa = torch_sdpa(*map(np.asarray, arrays), device=device)
    times = []
    for call in (sdpa.drift, sdpa.gradient):
        call()
        best = float("inf")
        for _ in range(3):
            _synchronise(device)
            start = time.perf_counter()
            call()
            _synchronise(device)
            best = min(best, time.perf_counter() - start)
        times.append(best)
    print(f"| {n} | {h} | {d} | PyTorch on {device} | {times[0] * 1e3:.2f} | {times[1] * 1e3:.2f} | |")


def _synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def run_of_moving_heads() -> None:
    """Ten Ornstein–Uhlenbeck heads on 200 tokens of S², with the exact energy balance, in float64."""
    keys, steps = jr.split(jr.key(1), 3), 200 if SMALL else 4000
    sphere, ts = tfl.Sphere(3), jnp.linspace(0.0, steps * 0.005, steps + 1)
    heads = tfl.Heads.tied(tfl.random_symmetric(keys[0], h=10, d=3), sign=-1)
    weights = tfl.OrnsteinUhlenbeck(start=heads, mean=jnp.eye(3), rate=1.0, noise=2.0**0.5).sample(keys[1], ts)
    flow, x0 = tfl.AttentionFlow(sphere, weights), sphere.uniform(keys[2], 200)

    def run():
        observe = {"balance": tfl.EnergyBalance(), "slope": tfl.Slope()}
        return tfl.solve(flow, x0, ts, observe=observe, states=False)

    seconds = timed(run, 1)
    solution = run()
    slope = solution.observed["slope"]
    print(f"{steps} steps in {seconds:.2f} s, {seconds / steps * 1e6:.0f} µs a step; status {solution.status}")
    print(f"slope at the end {float(slope[-1]):.4f}")
    assert np.all(np.isfinite(np.asarray(slope)))


def ensemble() -> None:
    """Members of one flow with noise in the heads: equal to single runs, and the time of each."""
    members, steps, n = (3, 50, 64) if SMALL else (32, 400, 512)
    keys = jr.split(jr.key(2), 3)
    sphere, ts = tfl.Sphere(3), jnp.linspace(0.0, steps * 0.01, steps + 1)
    heads = tfl.Heads.tied(tfl.random_symmetric(keys[0], h=4, d=3), sign=-1)
    process = tfl.OrnsteinUhlenbeck(start=heads, mean=jnp.eye(3), rate=1.0, noise=1.0)
    flow, x0 = tfl.AttentionFlow(sphere, process), sphere.uniform(keys[1], n)
    seeds = jr.split(keys[2], members)

    def run():
        return tfl.solve_ensemble(flow, x0, ts, seeds, observe={"slope": tfl.Slope()}, states=False)

    seconds = timed(run, 1)
    together = run().observed["slope"][1]
    alone = tfl.solve(tfl.realise(flow, seeds[1], ts), x0, ts, observe={"slope": tfl.Slope()}, states=False)
    gap = float(jnp.max(jnp.abs(together - alone.observed["slope"])))
    print(f"{members} members of {steps} steps, n = {n}: {seconds:.2f} s; member 1 against its own run: {gap:.1e}")
    assert gap < 1e-8


def gradient_through_a_run() -> None:
    """Gradient of the final energy through 50 fixed steps, n = 2048, h = 8, float32: time and memory."""
    n, steps = (128, 10) if SMALL else (2048, 50)
    x, score, value, _ = problem(n, 8, 3)
    ts = jnp.array([0.0, steps * 0.05], "float32")

    def energy(x):
        flow = tfl.AttentionFlow(tfl.Sphere(3), tfl.Heads(score / 4, value / 4))
        solution = tfl.solve(flow, x, ts, dt=0.05, observe={"order": tfl.OrderParameter()}, states=False)
        return solution.observed["order"][-1]

    gradient = jax.jit(jax.grad(energy))
    memory = gradient.lower(x).compile().memory_analysis().temp_size_in_bytes
    print(f"{steps} steps: {timed(lambda: gradient(x), 2):.2f} s, {memory / 1e6:.0f} MB of temporary memory")
    assert np.all(np.isfinite(np.asarray(gradient(x))))


SECTIONS = (equality, speed, run_of_moving_heads, ensemble, gradient_through_a_run)


def main() -> int:
    global SMALL
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="sizes for a trial on a CPU")
    SMALL = parser.parse_args().small
    jax.config.update("jax_enable_x64", True)  # single precision is asked for by dtype
    sys.stdout.reconfigure(line_buffering=True)
    print(f"jax {jax.__version__} on {jax.devices()}")
    failed = []
    for section in SECTIONS:
        print(f"\n## {section.__name__}: {section.__doc__}\n")
        start = time.perf_counter()
        try:
            section()
        except Exception:
            traceback.print_exc(file=sys.stdout)
            failed.append(section.__name__)
        print(f"({time.perf_counter() - start:.0f} s)")
    print("\nfailed: " + ", ".join(failed) if failed else "\nall sections passed")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
