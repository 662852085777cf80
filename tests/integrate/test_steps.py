"""Orders, exact counts, the sphere kept, and the two loops against each other and against Diffrax."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optimistix
import pytest

import transformer_flows as tfl

from ..problems import LinearFlow, MultiHead

# seed 8: the leading error term of every solver dominates at these steps, well above rounding
PROBLEM = MultiHead(seed=8)


@pytest.mark.parametrize(
    "solver, order, steps",
    [
        (diffrax.Euler(), 1, (64, 128, 256)),
        (diffrax.Heun(), 2, (32, 64, 128)),
        (diffrax.Bosh3(), 3, (16, 32, 64)),
        (diffrax.Tsit5(), 5, (16, 32, 64)),
    ],
    ids=["Euler", "Heun", "Bosh3", "Tsit5"],
)
def test_order(solver, order, steps):
    """Regression of the error at T = 1 against SciPy's DOP853 on a NumPy field."""
    exact = PROBLEM.reference(1.0)
    errors = []
    for count in steps:
        sol = tfl.solve(PROBLEM.flow, PROBLEM.x0, [0.0, 1.0], solver=solver, dt=1 / count)
        assert sol.stats["num_steps"] == count
        errors.append(np.abs(sol.states[-1] - exact).max())
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert abs(slope - order) < 0.15, (slope, errors)


def test_adaptive_meets_its_tolerance():
    sol = tfl.solve(PROBLEM.flow, PROBLEM.x0, [0.0, 1.0])
    assert sol.status == "successful"
    assert np.abs(sol.states[-1] - PROBLEM.reference(1.0)).max() < 1e-7


def test_rotation_keeps_its_order_and_the_sphere():
    """Fault 6: a long rotation; the projection after each step does not cost the order."""
    flow = LinearFlow(tfl.Sphere(3), jnp.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    x0 = tfl.Sphere(3).uniform(jr.key(0), 2)
    errors = []
    for dt in (0.2, 0.1, 0.05):
        sol = tfl.solve(flow, x0, [0.0, 100.0], dt=dt)
        errors.append(np.abs(sol.states[-1] - flow.exact(100.0, x0)).max())
        assert np.abs(np.linalg.norm(sol.states[-1], axis=-1) - 1).max() < 1e-15
    order = np.polyfit(np.log([0.2, 0.1, 0.05]), np.log(errors), 1)[0]
    assert order > 4.8, (order, errors)


@pytest.mark.parametrize("dt", [0.05, None], ids=["fixed", "adaptive"])
def test_repulsive_flow_stays_on_the_sphere(dtype, dt):
    """Fault 5: the radial mode of a repulsive flow is unstable; saved times between steps are on the sphere too."""
    x0 = tfl.Sphere(3).uniform(jr.key(1), 32).astype(dtype)
    heads = tfl.Heads.tied(4 * jnp.eye(3), sign=-1)
    ts = np.append(np.linspace(0, 0.9, 8) + 0.0123 * np.arange(8), 30.0)
    sol = tfl.solve(tfl.AttentionFlow(tfl.Sphere(3), heads), x0, ts, dt=dt)
    assert sol.status == "successful" and sol.states.dtype == dtype
    tolerance = 1e-6 if dtype == "float32" else 1e-15
    assert np.abs(np.linalg.norm(np.asarray(sol.states, float), axis=-1) - 1).max() <= tolerance


def test_fixed_steps_equal_diffrax_with_the_same_times():
    """The scan against diffeqsolve with StepTo, saved values between steps included."""
    ts = jnp.array([0.0, 0.3, 0.35, 0.8, 1.0])
    x0, flow = PROBLEM.x0, PROBLEM.flow
    ours = tfl.solve(flow, x0, ts, dt=0.1, solver=diffrax.Heun())
    plain = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, x, args: flow(t, x)),
        _Projected(diffrax.Heun()),
        0.0,
        1.0,
        None,
        x0,
        stepsize_controller=diffrax.StepTo(jnp.linspace(0, 1, 11)),
        saveat=diffrax.SaveAt(ts=ts, fn=lambda t, x, args: flow.manifold.retract(x)),
    )
    np.testing.assert_allclose(ours.states, plain.ys, atol=1e-14)


class _Projected(diffrax.AbstractWrappedSolver):
    solver: diffrax.AbstractSolver
    term_structure = property(lambda self: self.solver.term_structure)
    interpolation_cls = property(lambda self: self.solver.interpolation_cls)
    term_compatible_contr_kwargs = property(lambda self: self.solver.term_compatible_contr_kwargs)

    def order(self, terms):
        return self.solver.order(terms)

    def init(self, *args):
        return self.solver.init(*args)

    def step(self, *args):
        x, *rest = self.solver.step(*args)
        return (x / jnp.linalg.norm(x, axis=-1, keepdims=True), *rest)

    def func(self, *args):
        return self.solver.func(*args)


def test_float32_clock_counts_steps_exactly():
    """Fault 15: 400,000 steps are 400,000 steps, at times k·dt, although float32 cannot add 1e-3 that often."""
    flow = LinearFlow(tfl.Sphere(2), jnp.array([[0.0, -1.0], [1.0, 0.0]], "float32"))
    x0 = jnp.array([[1.0, 0.0]], "float32")
    ts = jnp.array([0.0, 100.0, 400.0], "float32")
    sol = tfl.solve(flow, x0, ts, dt=1e-3, solver=diffrax.Euler())
    assert sol.stats["num_steps"] == 400_000
    assert sol.states.dtype == jnp.float32
    # three steps too few would be 3e-3 radians
    np.testing.assert_allclose(sol.states[:, 0, 1], np.sin([0.0, 100.0, 400.0]), atol=1e-3)


@pytest.mark.parametrize("dt", [True, None], ids=["fixed", "adaptive"])
def test_tiny_time_scales(dtype, dt):
    """Fault 14: a horizon of 1e-10 with a field of size 1e10 is the problem of horizon 1."""
    A = jnp.array([[0.0, -1.0, 0.3], [1.0, 0.0, 0.2], [0.1, 0.5, 0.0]], dtype)
    x0 = tfl.Sphere(3).uniform(jr.key(2), 3).astype(dtype)
    one = tfl.solve(LinearFlow(tfl.Sphere(3), A), x0, jnp.array([0.0, 1.0], dtype), dt=dt and 0.01)
    tiny = tfl.solve(LinearFlow(tfl.Sphere(3), A * 1e10), x0, jnp.array([0.0, 1e-10], dtype), dt=dt and 1e-12)
    np.testing.assert_allclose(one.states, tiny.states, atol=3e-5 if dtype == "float32" else 1e-7)


def test_dtype_is_that_of_the_start_under_a_float64_clock():
    """Fault 29: float32 tokens with float64 times and float64 heads stay float32."""
    x0 = PROBLEM.x0.astype("float32")
    observe = {"energy": tfl.Energy(), "cosine": tfl.PairwiseCosine(), "count": tfl.ClusterCount()}
    for dt in (0.1, None):
        sol = tfl.solve(PROBLEM.flow, x0, np.array([0.0, 0.5, 1.0]), dt=dt, observe=observe)
        assert sol.states.dtype == jnp.float32
        assert {leaf.dtype for leaf in jax.tree.leaves(sol.observed)} == {jnp.dtype("float32")}


def test_steps_end_at_the_jumps_of_the_weights():
    """Piecewise-constant weights: stepping through the jumps equals solving piece by piece, for both loops."""
    keys = jr.split(jr.key(3), 3)
    pieces = [tfl.Heads(jr.normal(k, (1, 3, 3)), jr.normal(jr.fold_in(k, 1), (1, 3, 3))) for k in keys]
    values = jax.tree.map(lambda *leaves: jnp.stack(leaves), *pieces)
    path = tfl.PiecewiseConstant(jnp.array([0.0, 0.33, 0.71, 1.0]), values)
    flow = tfl.AttentionFlow(tfl.Sphere(3), path)
    x = PROBLEM.x0
    for a, b, heads in zip((0.0, 0.33, 0.71), (0.33, 0.71, 1.0), pieces, strict=True):
        x = tfl.solve(tfl.AttentionFlow(tfl.Sphere(3), heads), x, [a, b], rtol=1e-10, atol=1e-12).states[-1]
    adaptive = tfl.solve(flow, PROBLEM.x0, [0.0, 1.0], rtol=1e-10, atol=1e-12)
    fixed = tfl.solve(flow, PROBLEM.x0, [0.0, 1.0], dt=0.01, solver=diffrax.Tsit5())
    np.testing.assert_allclose(adaptive.states[-1], x, atol=1e-8)
    np.testing.assert_allclose(fixed.states[-1], x, atol=1e-8)


def test_adaptive_steps_end_where_lines_meet():
    """The weights' derivative jumps at a knot, and with it what the balance integrates."""
    D = jnp.stack([tfl.random_symmetric(k, h=2, d=3) for k in jr.split(jr.key(5), 4)])
    path = tfl.Interpolated([0.0, 0.31, 0.77, 1.0], jax.vmap(lambda d: tfl.Heads.tied(d, sign=-1))(D))
    flow = tfl.AttentionFlow(tfl.Sphere(3), path)
    observe = {"balance": tfl.EnergyBalance()}
    sol = tfl.solve(flow, PROBLEM.x0, [0.0, 1.0], rtol=1e-10, atol=1e-12, observe=observe)
    assert abs(sol.observed["balance"].residual[-1]) < 1e-8


@pytest.mark.parametrize("options", [{}, {"rtol": 1e-8}], ids=["fixed", "adaptive"])
def test_a_whole_flow_with_knots_is_differentiated(options):
    """The knots are among its arrays; the values at them get the derivative of finite differences."""
    D = jnp.stack([tfl.random_symmetric(k, h=1, d=3) for k in jr.split(jr.key(5), 3)])

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def end(path):
        flow = tfl.AttentionFlow(tfl.Sphere(3), path)
        return tfl.solve(flow, PROBLEM.x0, [0.0, 1.0], **options).states[-1][0, 0]

    path = lambda scale: tfl.Interpolated([0.0, 0.3, 1.0], _tied(scale * D))
    gradient = jnp.sum(end(path(1.0))[1].values.D * D)
    np.testing.assert_allclose(gradient, (end(path(1 + 1e-5))[0] - end(path(1 - 1e-5))[0]) / 2e-5, rtol=1e-5)


def _tied(D):
    return jax.vmap(lambda d: tfl.Heads.tied(d, sign=-1))(D)


def test_one_step_per_layer_is_the_network():
    """On the knots of piecewise-constant weights the default is a residual network, layer by layer."""
    keys = jr.split(jr.key(4), 5)
    D = jnp.stack([tfl.random_symmetric(k, h=2, d=3) for k in keys])
    path = tfl.PiecewiseConstant(jnp.linspace(0.0, 1.0, 6), jax.vmap(lambda d: tfl.Heads.tied(d, sign=1))(D))
    sol = tfl.solve(tfl.AttentionFlow(tfl.Sphere(3), path), PROBLEM.x0, jnp.linspace(0.0, 1.0, 6))
    x = PROBLEM.x0
    for d in D:
        flow = tfl.AttentionFlow(tfl.Sphere(3), tfl.Heads.tied(d, sign=1))
        x = x + 0.2 * flow(0.0, x)
        x = x / jnp.linalg.norm(x, axis=-1, keepdims=True)
    assert sol.stats["num_steps"] == 5
    np.testing.assert_allclose(sol.states[-1], x, atol=1e-14)


@pytest.mark.parametrize("options", [{}, {"dt": 0.1}], ids=["adaptive", "fixed"])
def test_implicit_solvers_find_their_roots(options):
    """Their root finder takes the tolerances of the solve where it has none of its own, for fixed steps too."""
    newton = diffrax.with_stepsize_controller_tols(optimistix.Newton)()
    sol = tfl.solve(PROBLEM.flow, PROBLEM.x0, [0.0, 1.0], solver=diffrax.Kvaerno5(root_finder=newton), **options)
    assert sol.status == "successful"
    assert np.abs(sol.states[-1] - PROBLEM.reference(1.0)).max() < (1e-4 if options else 1e-6)
    own = diffrax.ImplicitEuler(root_finder=optimistix.Newton(rtol=1e-4, atol=1e-4))
    assert tfl.solve(PROBLEM.flow, PROBLEM.x0, [0.0, 1.0], solver=own, dt=0.1).status == "successful"


@pytest.mark.parametrize("dt", [0.1, None], ids=["fixed", "adaptive"])
def test_flows_may_hold_functions(dt):
    """A path given as a plain function and a learned field: leaves that are not arrays are no obstacle."""
    weights = tfl.Prescribed(lambda t: tfl.Heads.tied(jnp.cos(t) * jnp.eye(3), sign=-1))
    flow = tfl.AttentionFlow(tfl.Sphere(3), weights)
    sol = tfl.solve(flow, PROBLEM.x0, [0.0, 1.0], dt=dt, observe={"balance": tfl.EnergyBalance()})
    assert sol.status == "successful" and abs(sol.observed["balance"].residual[-1]) < 1e-4
    assert (
        tfl.solve(_Learned(eqx.nn.MLP(3, 3, 4, 1, key=jr.key(0))), PROBLEM.x0, [0.0, 1.0], dt=dt).status == "successful"
    )


class _Learned(tfl.AbstractFlow):
    net: eqx.nn.MLP
    manifold: tfl.Sphere = tfl.Sphere(3)

    def __call__(self, t, x):
        return self.manifold.project(x, jax.vmap(self.net)(x))
