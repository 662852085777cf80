"""Every derivative mode through both loops, against finite differences and against each other; traces counted."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl

from ..problems import CountingFlow, LinearFlow, MultiHead

PROBLEM = MultiHead(sign=-1)
SPHERE = tfl.Sphere(3)


def terminal_energy(parameters, **options):
    """Energy at T = 1 from (tokens, head matrices, β)."""
    x0, D, beta = parameters
    flow = tfl.AttentionFlow(SPHERE, tfl.Heads.tied(beta * D, sign=-1))
    ts = np.array([0.0, 1.0])
    sol = tfl.solve(flow, x0, ts, observe={"energy": tfl.Energy()}, states=False, **options)
    return sol.observed["energy"][-1]


PARAMETERS = (PROBLEM.x0, PROBLEM.heads.D, jnp.asarray(0.8))


def direction(seed):
    leaves, tree = jax.tree.flatten(PARAMETERS)
    keys = jr.split(jr.key(seed), len(leaves))
    x, D, beta = jax.tree.unflatten(tree, [jr.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)])
    return SPHERE.project(PROBLEM.x0, x), D + D.mT, beta


@pytest.mark.parametrize("options", [{"dt": 0.05}, {"rtol": 1e-10, "atol": 1e-12}], ids=["fixed", "adaptive"])
def test_gradient_equals_finite_differences(options):
    """With respect to tokens, head matrices and β, separately."""
    both = jax.jit(jax.value_and_grad(lambda p: terminal_energy(p, **options)))
    gradient, loss = both(PARAMETERS)[1], lambda p: both(p)[0]
    along = direction(5)
    for part in range(3):
        move = tuple(a if i == part else jnp.zeros_like(a) for i, a in enumerate(along))
        eps = 1e-4
        shift = lambda s: jax.tree.map(lambda p, m: p + s * m, PARAMETERS, move)  # noqa: B023
        finite = (loss(shift(eps)) - loss(shift(-eps))) / (2 * eps)
        exact = sum(jnp.vdot(g, m) for g, m in zip(gradient, move, strict=True))
        assert abs(finite - exact) < 1e-5 * max(1, abs(exact)), part


def test_all_modes_agree_with_fixed_steps():
    """Fault 27: jvp, gradient and Hessian-vector products (forward over reverse and reverse over forward)."""
    loss = lambda p: terminal_energy(p, dt=0.1, solver=diffrax.Heun())
    v, w = direction(1), direction(2)
    dot = lambda a, b: sum(jnp.vdot(x, y) for x, y in zip(a, b, strict=True))
    gradient, over = jax.jit(lambda p: jax.jvp(jax.grad(loss), (p,), (v,)))(PARAMETERS)
    forward, under = jax.jit(jax.value_and_grad(lambda p: jax.jvp(loss, (p,), (w,))[1]))(PARAMETERS)
    np.testing.assert_allclose(forward, dot(gradient, w), rtol=1e-11)
    np.testing.assert_allclose(dot(over, w), dot(under, v), rtol=1e-9)


def test_adaptive_forward_mode_and_hessian_with_the_documented_adjoint():
    """Fault 27: forward mode and Hessians of adaptive solves under DirectAdjoint."""
    options = {"rtol": 1e-7, "atol": 1e-9, "adjoint": diffrax.DirectAdjoint(), "max_steps": 256}
    loss = lambda beta: terminal_energy((*PARAMETERS[:2], beta), **options)
    plain = lambda beta: terminal_energy((*PARAMETERS[:2], beta), rtol=1e-9, atol=1e-11)
    beta = jnp.asarray(0.8)
    along = lambda f: lambda b: jax.jvp(f, (b,), (jnp.ones(()),))
    first, second = jax.jit(along(lambda b: along(loss)(b)[1]))(beta)
    slope = jax.jit(jax.grad(plain))
    np.testing.assert_allclose(first, slope(beta), rtol=1e-4)
    np.testing.assert_allclose(second, (slope(beta + 1e-3) - slope(beta - 1e-3)) / 2e-3, rtol=1e-3)


def test_gradient_memory_grows_slower_than_the_steps():
    """Fault 27: reverse mode over 4 times the steps needs about twice the memory."""
    flow = LinearFlow(tfl.Sphere(64), jnp.diag(jnp.arange(64.0)))
    x0 = tfl.Sphere(64).uniform(jr.key(0), 512)

    def temporary(steps):
        loss = lambda x: tfl.solve(flow, x, np.array([0.0, 1.0]), dt=1 / steps, solver=diffrax.Euler()).states[-1].sum()
        return jax.jit(jax.grad(loss)).lower(x0).compile().memory_analysis().temp_size_in_bytes

    small, large = temporary(256), temporary(1024)
    assert large < 2.6 * small
    assert large < 0.5 * 1024 * x0.nbytes


@pytest.mark.parametrize("options", [{"dt": 0.25}, {}], ids=["fixed", "adaptive"])
def test_one_trace_for_every_value(options):
    """Fault 28: β as float, int, NumPy number or array, and new tolerances, compile once."""
    counter = []

    def run(beta):
        flow = tfl.AttentionFlow(SPHERE, tfl.Heads.identity(3, beta=beta))
        return tfl.solve(CountingFlow(flow, counter), PROBLEM.x0, [0.0, 1.0], **options).states[-1]

    first = run(1.0)
    traces = len(counter)
    others = [run(2), run(np.float64(3.0)), run(jnp.asarray(4.0))]
    assert len(counter) == traces > 0
    assert all(not np.allclose(first, other) for other in others)


def test_modules_trace_once_where_closures_cannot():
    """A user's function is static: an Equinox module with array fields is the cure for one compile per closure."""

    class Twist(eqx.Module):
        rate: jnp.ndarray
        counter: list = eqx.field(static=True)

        def __call__(self, t):
            self.counter.append(None)
            return tfl.Heads.tied(jnp.cos(self.rate * t) * jnp.eye(3), sign=1)

    counter = []
    for rate in (1.0, 2.0):
        flow = tfl.AttentionFlow(SPHERE, tfl.Prescribed(Twist(jnp.asarray(rate), counter)))
        tfl.solve(flow, PROBLEM.x0, [0.0, 1.0], dt=0.25, solver=diffrax.Euler())
        traces = traces if rate == 2.0 else len(counter)
    assert len(counter) == traces
