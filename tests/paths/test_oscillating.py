"""Oscillating weights against an independent solver and the matrices as the paper prints them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from transformer_flows.models import Heads, TiedHeads
from transformer_flows.paths import Oscillating, phase_locked, phase_spread

TIMES = np.array([0.0, 0.3, 1.7, 6.0])


def force_of_paper(t, d):
    sin, cos = np.sin, np.cos
    if d == 2:
        return np.array([[2 + 1.5 * cos(t), sin(2 * t)], [sin(2 * t), 2 - 1.5 * cos(t)]])
    return np.array(
        [
            [2 + 1.5 * cos(t), sin(2 * t), sin(t)],
            [sin(2 * t), 2 + 1.5 * sin(t), cos(2 * t)],
            [sin(t), cos(2 * t), 2 + 1.5 * cos(t + np.pi / 4)],
        ]
    )


def symmetric(h, d):
    z = np.random.default_rng(d).normal(size=(h, d, d))
    return z + np.swapaxes(z, -1, -2)


@eqx.filter_jit
def along(path, times):
    return jax.vmap(lambda t: (path(t).D, path.derivative(t).D, jax.jvp(lambda t: path(t).D, (t,), (1.0,))[1]))(times)


@pytest.mark.parametrize("d", [2, 3])
def test_solves_its_equation(d):
    start, phases = symmetric(3, d), np.asarray(phase_spread(3))
    np.testing.assert_allclose(phases, 2 * np.pi * np.array([0, 1, 2]) / 3, rtol=1e-15)
    path = Oscillating(TiedHeads(start, sign=-1), phases)

    def right_hand_side(t, flat):
        force = np.stack([force_of_paper(t + phase, d) for phase in phases])
        return (force - flat.reshape(start.shape)).ravel()

    exact = solve_ivp(right_hand_side, (0, 6), start.ravel(), method="DOP853", t_eval=TIMES, rtol=1e-12, atol=1e-13)
    values, velocity, by_autodiff = along(path, jnp.asarray(TIMES))
    np.testing.assert_allclose(values, exact.y.T.reshape(-1, *start.shape), atol=1e-10)
    expected = np.stack([right_hand_side(t, y) for t, y in zip(TIMES, exact.y.T, strict=True)])
    np.testing.assert_allclose(velocity, expected.reshape(values.shape), atol=1e-10)
    np.testing.assert_allclose(by_autodiff, velocity, atol=1e-13)
    np.testing.assert_array_equal(values[0], start)
    assert path.grid is None and path.jumps is None


def test_own_force_moves_score_and_value_alike():
    """d = 1, one head, F = 3 + 2 cos t - 5 sin 2t: D(t) written out."""
    one = np.ones((1, 1))
    path = Oscillating(
        Heads(4 * one, -one),
        phase_locked(1),
        offset=3 * one,
        cosine=np.stack([2 * one, 0 * one]),
        sine=np.stack([0 * one, -5 * one]),
    )

    def periodic(t):
        return 3 + np.cos(t) + np.sin(t) + 2 * np.cos(2 * t) - np.sin(2 * t)

    value, increment = eqx.filter_jit(lambda path: (path(0.4), path.increment(0.4, 0.9)))(path)
    for name, start in (("score", 4), ("value", -1)):
        exact = [periodic(t) + np.exp(-t) * (start - periodic(0)) for t in (0.4, 0.9)]
        np.testing.assert_allclose(getattr(value, name), exact[0] * one[None], rtol=1e-14)
        np.testing.assert_allclose(getattr(increment.drift, name), (exact[1] - exact[0]) * one[None], rtol=1e-13)
    assert increment.variance == 0 and (increment.martingale.score == 0).all()


def test_dtype_of_the_start_is_kept():
    path = Oscillating(TiedHeads(jnp.zeros((2, 3, 3), jnp.float32), sign=1), phase_locked(2))
    t = jax.ShapeDtypeStruct((), "float64")
    outputs = jax.tree.leaves(jax.eval_shape(lambda t: (path(t), path.derivative(t), path.increment(t, t)), t))
    assert {leaf.dtype.name for leaf in outputs} == {"float32"}


@pytest.mark.parametrize(
    ("start", "phases", "force", "message"),
    [
        (np.zeros((2, 4, 4)), np.zeros(2), {}, "for d = 4 give offset"),
        (np.zeros((2, 3, 3)), np.zeros(3), {}, r"phases must be one per head, \(2,\); got \(3,\)"),
        (np.zeros((2, 3, 3)), np.array([0.0, np.nan]), {}, r"phases must be finite.*\(1,\)"),
        (np.zeros((3, 3)), np.zeros(3), {}, r"one shape \(h, d, d\)"),
        (np.zeros((2, 3, 3)), np.zeros(2), {"offset": np.eye(3)}, "must be given together"),
        (
            np.zeros((2, 3, 3)),
            np.zeros(2),
            {"offset": np.eye(2), "cosine": np.zeros((1, 3, 3)), "sine": np.zeros((1, 3, 3))},
            r"offset must be \(3, 3\)",
        ),
        (
            TiedHeads(np.zeros((1, 2, 2)), sign=1),
            np.zeros(1),
            {"offset": np.arange(4.0).reshape(2, 2), "cosine": np.zeros((1, 2, 2)), "sine": np.zeros((1, 2, 2))},
            "the force must be symmetric",
        ),
    ],
)
def test_wrong_arguments_are_refused(start, phases, force, message):
    with pytest.raises(ValueError, match=message):
        Oscillating(start if isinstance(start, TiedHeads) else jnp.asarray(start), phases, **force)
