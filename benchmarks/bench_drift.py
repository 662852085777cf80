"""One attention drift, forward and gradient: this library, PyTorch, plain JAX, NumPy. See README.md for the command."""

import itertools

import numpy as np
import pytest
from baselines import jax_contestant, naive_jax, numpy_softmax, torch, torch_sdpa
from race import available_memory, extra_memory, finish, race

import transformer_flows as tfl

CASES = [(n, d, h) for n, d, h in itertools.product((256, 1024, 4096, 16384), (3, 16, 64), (1, 8))]
LONGEST = 20.0  # seconds of one call beyond which a contestant is left out
PAIRS_PER_SECOND = 2e7  # a pessimist's estimate for a contestant that may be left out


def ours(x, score, value, c):
    def drift(x, score, value):
        return tfl.AttentionFlow(tfl.Sphere(x.shape[-1]), tfl.Heads(score, value))(0.0, x)

    return jax_contestant(drift, x, score, value, c)


def problem(n: int, d: int, h: int):
    """Tokens uniform on the sphere, scores of standard deviation about 2, in float32."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    score, value = 2 * rng.standard_normal((h, d, d)), rng.standard_normal((h, d, d))
    return tuple(a.astype("float32") for a in (x, score, value, rng.standard_normal((n, d))))


MAKERS = {"ours": ours, "PyTorch": torch_sdpa, "naive JAX": naive_jax, "NumPy": numpy_softmax}


def contestants(n: int, d: int, h: int, mode: str) -> tuple[dict, dict]:
    """The calls of one row, and why each absent one is absent."""
    arrays, calls, absent = problem(n, d, h), {}, {}
    for name, make in MAKERS.items():
        if name == "PyTorch" and torch is None:
            absent[name] = "not installed"
            continue
        if name == "NumPy" and h * n * n / PAIRS_PER_SECOND > LONGEST:
            absent[name] = "too slow"
            continue
        contestant = make(*arrays)
        call, needed = (contestant.drift, contestant.bytes_needed[0])
        if mode == "gradient":
            call, needed = contestant.gradient, contestant.bytes_needed[1]
        if call is None:
            absent[name] = "none"
        elif needed > 0.6 * available_memory():
            absent[name] = f"{needed / 1e9:.0f} GB"
        else:
            calls[name] = call
    return calls, absent


@pytest.fixture(scope="module")
def table():
    rows: list[str] = []
    yield rows.append
    head = " | ".join(f"{name}, ms (MB)" for name in MAKERS)
    print(f"\n\n| n | d | h | | {head} | ours is faster than PyTorch / naive / NumPy by |")
    print("|" + "---|" * (5 + len(MAKERS)))
    print("\n".join(rows))


@pytest.mark.parametrize("mode", ["forward", "gradient"])
@pytest.mark.parametrize(("n", "d", "h"), CASES)
def test_drift(n, d, h, mode, benchmark, table):
    calls, absent = contestants(n, d, h, mode)
    _agree(calls)
    times = race(calls)
    memory = {name: extra_memory(call) for name, call in calls.items()}
    benchmark.extra_info |= {name: {"seconds": times[name], "bytes": memory[name]} for name in calls}
    benchmark.pedantic(lambda: finish(calls["ours"]()), rounds=3, warmup_rounds=1)
    cells = [_cell(name, times, memory, absent) for name in MAKERS]
    ratios = [f"{times[name] / times['ours']:.1f}" if name in times else "–" for name in MAKERS if name != "ours"]
    table(f"| {n} | {d} | {h} | {mode} | {' | '.join(cells)} | {' / '.join(ratios)} |")


def _agree(calls: dict) -> None:
    """Every contestant computes the same thing, or the comparison is void."""
    want = calls["ours"]()
    for call in calls.values():
        got = call()
        pairs = zip(got, want, strict=True) if isinstance(want, tuple | list) else [(got, want)]
        for a, b in pairs:
            scale = float(np.abs(np.asarray(b)).max())
            np.testing.assert_allclose(np.asarray(a) / scale, np.asarray(b) / scale, rtol=0, atol=2e-4)


def _cell(name: str, times: dict, memory: dict, absent: dict) -> str:
    if name in absent:
        return f"({absent[name]})"
    size = "?" if memory[name] is None else f"{memory[name] / 1e6:.0f}"
    return f"{times[name] * 1e3:.2f} ({size})"
