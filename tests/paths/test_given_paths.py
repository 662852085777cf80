"""Paths that do not move by noise: values, slopes and increments against numpy and closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_flows.models import TiedHeads
from transformer_flows.paths import Constant, Interpolated, PiecewiseConstant, Prescribed
from transformer_flows.paths._knots import knots

GRID = np.array([0.0, 0.5, 1.25, 3.0])
TIMES = np.array([-1.0, 0.0, 0.2, 0.5, 1.0, 1.25, 2.0, 3.0, 4.0])
VALUES = np.random.default_rng(0).normal(size=(4, 2))


@eqx.filter_jit
def along(path, times):
    """Values, derivatives and increments to the next time, at all times."""
    increments = jax.vmap(path.increment)(times[:-1], times[1:])
    return jax.vmap(path)(times), jax.vmap(path.derivative)(times), increments


def test_interpolated_is_linear_between_knots_and_constant_outside(dtype):
    path = Interpolated(GRID, {"a": jnp.asarray(VALUES, dtype)})
    values, slopes, increments = along(path, jnp.asarray(TIMES))
    expected = np.stack([np.interp(TIMES, GRID, column) for column in VALUES.T], axis=1)
    inside = np.clip(np.searchsorted(GRID, TIMES, side="right") - 1, 0, 2)
    slope = (np.diff(VALUES, axis=0) / np.diff(GRID)[:, None])[inside]
    slope[[0, -1]] = 0
    tolerance = 8 * float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(values["a"], expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(slopes["a"], slope, rtol=4 * tolerance)
    np.testing.assert_allclose(increments.drift["a"], np.diff(expected, axis=0), atol=2 * tolerance)
    assert (increments.martingale["a"] == 0).all() and (increments.variance == 0).all()
    assert {leaf.dtype.name for leaf in jax.tree.leaves((values, slopes, increments))} == {dtype}
    np.testing.assert_array_equal(values["a"][np.isin(TIMES, GRID)], jnp.asarray(VALUES, dtype))
    np.testing.assert_array_equal(path.grid, GRID)
    assert path.jumps is None


def test_piecewise_constant_is_right_continuous_and_jumps_at_interior_knots():
    path = PiecewiseConstant(GRID, VALUES[:3])
    values, slopes, increments = along(path, jnp.asarray(TIMES))
    layer = [0, 0, 0, 1, 1, 2, 2, 2, 2]
    np.testing.assert_array_equal(values, VALUES[layer])
    assert slopes is None
    np.testing.assert_array_equal(increments.drift, np.diff(VALUES[layer], axis=0))
    assert (increments.martingale == 0).all() and (increments.variance == 0).all()
    np.testing.assert_array_equal(path.grid, GRID)
    np.testing.assert_array_equal(path.jumps, [0.5, 1.25])


def test_constant_does_not_move():
    heads = TiedHeads(np.eye(2), sign=-1)
    path = Constant(heads)
    increment = path.increment(0.0, 1.0)
    assert path(3.0).sign == -1 and (path(3.0).D == heads.D).all()
    for still in (path.derivative(0.0), increment.drift, increment.martingale):
        assert isinstance(still, TiedHeads) and (still.D == 0).all()
    assert path.grid is None and path.jumps is None and increment.variance == 0


class Wave(eqx.Module):
    frequency: jax.Array

    def __call__(self, t):
        return {"wave": jnp.sin(self.frequency * t), "name": None}


def test_prescribed_has_the_derivative_of_its_function_and_no_new_trace_for_new_parameters():
    traces = 0

    @eqx.filter_jit
    def value_and_slope(path, t):
        nonlocal traces
        traces += 1
        return path(t), path.derivative(t), path.increment(t, 2 * t)

    for frequency in (1.0, 3.0):
        path = Prescribed(Wave(jnp.asarray(frequency)))
        value, slope, increment = value_and_slope(path, jnp.asarray(0.7))
        np.testing.assert_allclose(value["wave"], np.sin(0.7 * frequency), rtol=1e-14)
        np.testing.assert_allclose(slope["wave"], frequency * np.cos(0.7 * frequency), rtol=1e-14)
        change = np.sin(1.4 * frequency) - np.sin(0.7 * frequency)
        np.testing.assert_allclose(increment.drift["wave"], change, rtol=1e-13)
    assert traces == 1
    assert Prescribed(Wave(jnp.ones(())), jumps=[0.5]).jumps.shape == (1,)


def test_one_program_serves_every_value_and_gradients_pass_through_values():
    """Python numbers, integers and arrays give one type; the gradient is that of linear interpolation."""
    traces = 0

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(path, t):
        nonlocal traces
        traces += 1
        return path(t)

    for values in ([0, 1, 2, 3], np.arange(4.0), jnp.arange(4)):
        got = gradient(Interpolated(list(GRID), jnp.asarray(values)), jnp.asarray(1.0))
        np.testing.assert_allclose(got.values, [0, 1 / 3, 2 / 3, 0], rtol=1e-14)
        np.testing.assert_allclose(got.grid[1:3], [-4 / 9, -8 / 9], rtol=1e-14)
    assert traces == 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Interpolated([0.0, 1.0, 1.0], np.zeros(3)), "grid must increase strictly.*index 1"),
        (lambda: Interpolated([0.0, np.nan], np.zeros(2)), "grid must be finite.*index"),
        (lambda: knots(np.array([[0.0, 1.0]]), "grid"), r"grid must be a vector.*\(1, 2\)"),
        (lambda: Interpolated([0.0, 1.0], {"a": np.zeros(2), "b": np.zeros(3)}), r"leading axis of 2.*\(3,\)"),
        (lambda: Interpolated([0.0, 1.0], None), "no array"),
        (lambda: Interpolated([0.0, 1.0], np.array([1.0, np.nan])), "values must be finite.*index"),
        (lambda: PiecewiseConstant([0.0, 1.0, 2.0], np.zeros(3)), r"leading axis of 2, one value per interval"),
        (lambda: PiecewiseConstant([0.0], np.zeros(0)), "at least 2 times"),
        (lambda: Prescribed(jnp.sin, jumps=[1.0, 0.5]), "jumps must increase strictly"),
    ],
)
def test_wrong_arguments_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
