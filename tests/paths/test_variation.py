"""Lengths of paths against closed forms, and tails that are finite exactly where the path comes to rest."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl

TS = np.linspace(0.0, 20.0, 201)
START = tfl.Heads.tied(tfl.random_symmetric(jr.key(1), h=2, d=3), sign=-1)


def decaying(power, scale):
    """|Θ'| = (1 + t)^(−power), in a tree of two arrays that share it as 3 : 4."""
    value = lambda t: scale * (1 + t) ** (1 - power) / (1 - power)
    return tfl.Prescribed(lambda t: {"a": 0.6 * value(t), "b": 0.8 * value(t)[None]})


def test_ornstein_uhlenbeck_without_noise():
    """|Θ'| = |D(0) − M| e^{−t}: a straight line to M, so the total is exact at any knots, and so is the tail."""
    process = tfl.OrnsteinUhlenbeck(START, 0.5 * jnp.eye(3), 1.0, 0.0)
    gap = np.linalg.norm(np.asarray(START.D) - 0.5 * np.eye(3))
    for T in (3.0, 8.0):
        found = tfl.variation(process.sample(jr.key(0), np.linspace(0, T, 81)), [0.0, T])
        np.testing.assert_allclose(found.total, gap * -np.expm1(-T), rtol=1e-12)
        np.testing.assert_allclose(found.tail, gap * np.exp(-T), rtol=1e-3)
        assert found.integrable


@pytest.mark.parametrize("phases", [tfl.phase_locked(2), tfl.phase_spread(2)], ids=["locked", "spread"])
def test_oscillation_never_comes_to_rest(phases):
    path = tfl.Oscillating(START, phases)
    found = tfl.variation(path, TS)
    assert found.tail == np.inf and not found.integrable
    fine = np.asarray(jax.jit(jax.vmap(lambda t: path(t).D))(np.linspace(0, 20, 4001)))
    chords = np.sqrt((np.diff(fine, axis=0) ** 2).sum(axis=(1, 2, 3))).sum()
    np.testing.assert_allclose(found.total, chords, rtol=1e-5)


def test_noise_never_comes_to_rest_and_its_length_is_that_of_the_lines():
    process = tfl.OrnsteinUhlenbeck(START, jnp.eye(3), 1.0, 2**0.5)
    path = process.sample(jr.key(0), TS)
    found = tfl.variation(path, TS)
    steps = np.diff(np.asarray(path.values.D), axis=0)
    np.testing.assert_allclose(found.total, np.sqrt((steps**2).sum(axis=(1, 2, 3))).sum(), rtol=1e-12)
    assert found.tail == np.inf
    smoothed = tfl.variation(path.smoothed(), TS)  # Gauss' rule in place of differences
    np.testing.assert_allclose(smoothed.total, found.total, rtol=1e-12)


def test_layers_add_up_their_jumps():
    """Jumps 2^{-k} at t = k: those after T = 12 would add up to 2^{-11}, whatever the times asked for."""
    path = tfl.PiecewiseConstant(np.arange(13.0), np.cumsum(0.5 ** np.arange(12)))
    for ts in ([0.0, 12.0], np.linspace(0.0, 12.0, 101)):
        found = tfl.variation(path, ts)
        np.testing.assert_allclose(found.total, 1 - 0.5**11, rtol=1e-14)
        np.testing.assert_allclose(found.tail, 0.5**11, rtol=0.2)
    assert tfl.variation(path, [0.0, 0.5]).total == 0
    np.testing.assert_allclose(tfl.variation(path, [2.5, 4.5]).total, 0.5**3 + 0.5**4, rtol=1e-14)
    steady = tfl.PiecewiseConstant(np.arange(13.0), np.arange(12.0))
    assert tfl.variation(steady, [0.0, 12.0]) == (11.0, np.inf)


def test_power_decay_and_jumps_of_a_smooth_path():
    ts = np.linspace(0.0, 100.0, 401)
    found = tfl.variation(decaying(2.5, 1.0), ts)
    np.testing.assert_allclose(found.total, (1 - 101**-1.5) / 1.5, rtol=1e-7)
    np.testing.assert_allclose(found.tail, 101**-1.5 / 1.5, rtol=0.03)
    assert not tfl.variation(decaying(0.5, 1.0), ts).integrable
    sawtooth = tfl.Prescribed(lambda t: t - 2 * (t >= 1.0), jumps=[1.0])
    np.testing.assert_allclose(tfl.variation(sawtooth, [0.0, 3.0]).total, 5, rtol=1e-12)


def test_a_path_that_does_not_move_wrong_times_and_a_process_not_drawn():
    assert tfl.variation(tfl.Constant(START), TS) == (0.0, 0.0)
    for process in (tfl.OrnsteinUhlenbeck(START, jnp.eye(3), 1.0, 1.0), tfl.Brownian(jnp.zeros(2))):
        with pytest.raises(ValueError, match=f"path must be drawn; got a {type(process).__name__} that is not"):
            tfl.variation(process, TS)
    with pytest.raises(ValueError, match="ts must increase strictly"):
        tfl.variation(tfl.Constant(START), [0.0, 1.0, 1.0])
