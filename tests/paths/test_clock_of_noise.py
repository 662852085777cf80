"""The noise of a key is one path, whatever it is sampled on, and has the right law."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from transformer_flows.models import TiedHeads
from transformer_flows.paths import Brownian, OrnsteinUhlenbeck
from transformer_flows.paths._dyadic import places
from transformer_flows.paths._gauss_markov import _bridge, _transition, gauss_markov

UNIT = 0.64
TS = jnp.linspace(0.0, 2.0, 101)  # the products 0.02·k, whose last bits are not those of multiples of unit/32
HEADS = TiedHeads(np.stack([np.eye(2), -np.eye(2)]), sign=-1)
WEIGHTS = OrnsteinUhlenbeck(HEADS, jnp.eye(2), 0.7, 2**0.5, unit=UNIT)
KEYS = jr.split(jr.key(11), 2)


@pytest.fixture(scope="module")
def alone():
    return np.stack([WEIGHTS.sample(key, TS).values.D for key in KEYS])


def test_same_path_for_every_horizon_and_every_step(alone):
    """Fault: a Brownian tree gives another path for another horizon, and a generator of steps for another step."""
    longer_and_coarser = WEIGHTS.sample(KEYS[0], jnp.linspace(0.0, 4.0, 26)).values.D
    np.testing.assert_array_equal(longer_and_coarser[:13], alone[0, ::8])
    among_others = jnp.asarray(np.sort(np.concatenate([TS, TS[:-1] + 0.0071])))  # not dyadic: all levels are needed
    fine = np.asarray(WEIGHTS.sample(KEYS[0], among_others).values.D)
    np.testing.assert_array_equal(fine[::2], alone[0])
    assert np.abs(np.diff(fine[:, 0, 0, 0])).min() > 0


def test_members_have_bitwise_the_same_noise_however_they_are_batched(alone):
    """In the loop all but the key is a constant of the program, which compilers fold with a library of their own."""

    def sample(key):
        return WEIGHTS.sample(key, TS).values.D

    np.testing.assert_array_equal(jax.jit(lambda keys: jax.lax.map(sample, keys))(KEYS), alone)
    np.testing.assert_array_equal(jax.vmap(sample)(KEYS), alone)


def test_times_that_are_not_known_when_tracing_give_the_same_noise(alone):
    traced = jax.jit(lambda key, ts: WEIGHTS.sample(key, ts).values.D)(KEYS[1], TS)
    np.testing.assert_array_equal(traced, alone[1])


def test_depth_does_not_move_the_knots_that_it_reaches(alone):
    """Depth 2 halves the unit 0.64 into quarters, which are every eighth time; between them it is a line."""
    still = OrnsteinUhlenbeck(HEADS, jnp.eye(2), 0.7, 0.0, unit=UNIT, depth=2)
    moving = OrnsteinUhlenbeck(HEADS, jnp.eye(2), 0.7, 2**0.5, unit=UNIT, depth=2)
    shallow = moving.sample(KEYS[0], TS).values.D
    np.testing.assert_array_equal(shallow[::8], alone[0, ::8])
    noise = np.asarray(shallow - still.sample(KEYS[0], TS).values.D)
    bend = noise[2:] - 2 * noise[1:-1] + noise[:-2]
    at_knot = np.arange(1, 100) % 8 == 0
    assert np.abs(bend[~at_knot]).max() < 1e-14 and np.abs(bend[at_knot]).min() > 1e-4


def test_brownian_path_moves_by_its_martingale():
    path = Brownian(HEADS, unit=UNIT).sample(KEYS[0], TS)
    increment = path.increment(TS[3], TS[8])
    assert (increment.drift.D == 0).all() and path.derivative(0.3) is None and path.jumps is None
    np.testing.assert_array_equal(increment.martingale.D, path.values.D[8] - path.values.D[3])
    np.testing.assert_allclose(increment.variance, TS[8] - TS[3], rtol=1e-14)
    np.testing.assert_array_equal(path.values.D, np.swapaxes(path.values.D, -1, -2))
    assert (path(0.0).D == 0).all() and path(0.5).sign == -1 and (path.grid == TS).all()


def test_brownian_takes_shapes_and_keeps_dtypes():
    like = {"a": jax.ShapeDtypeStruct((2,), "float32"), "b": jnp.zeros(()), "c": None}
    path = jax.eval_shape(lambda key: Brownian(like).sample(key, TS), KEYS[0])
    assert (path.values["a"].shape, path.values["a"].dtype) == ((101, 2), jnp.float32)
    assert (path.values["b"].shape, path.values["b"].dtype) == ((101,), jnp.float64)


def test_times_within_rounding_of_a_multiple_need_its_level_only():
    steps = np.arange(4001)
    for ts in (np.linspace(0, 20, 4001), steps * 0.005, (steps * 0.005).astype("float32")):
        where = places(jnp.asarray(ts), UNIT, 20)
        assert (where.levels, where.intervals) == (7, 32)
        np.testing.assert_array_equal(where.interval, steps // 128)
        np.testing.assert_array_equal(where.position, steps % 128)
        assert (where.weight == 0).all()
    where = places(jnp.asarray([0.0, 0.1]), 1.0, 20)
    assert where.levels == 20 and where.position[1] == int(0.1 * 2**20) and 0 < where.weight[1] < 1


def test_covariance_is_that_of_the_law_at_any_times():
    """Cov(X_s, X_t) = (e^{-r|t-s|} - e^{-r(t+s)})/(2r), min(s, t) for r = 0, within 4.5 standard errors."""
    ts = jnp.array([0.3, 0.5, 0.8125, 1.0, 1.9, 3.0])
    rates = jnp.array([0.0, 0.5, 3.0])
    n = 20_000

    @jax.jit
    @jax.vmap
    def covariance(rate):
        x = gauss_markov(jr.key(3), jnp.zeros(n), ts, rate=rate, unit=1.0, depth=12)
        return x @ x.T / n, x.mean(1)

    second, mean = covariance(rates)
    s, t = np.meshgrid(ts, ts)
    for r, got, centre in zip(np.asarray(rates), second, mean, strict=True):
        exact = np.minimum(s, t) if r == 0 else (np.exp(-r * abs(t - s)) - np.exp(-r * (t + s))) / (2 * r)
        variance = np.diag(exact)
        error = np.sqrt((variance[:, None] * variance + exact**2) / n)
        assert (np.abs(got - exact) < 4.5 * error).all()
        assert (np.abs(centre) < 4.5 * np.sqrt(variance / n)).all()


def test_transition_and_bridge_are_the_conditional_laws():
    """Both from the joint covariance of (X(h/2), X(h)) by Gaussian conditioning, in extended precision."""
    rates, lengths = (a.ravel() for a in np.meshgrid([1e-12, 1e-4, 0.05, 0.9, 7.0], [0.01, 1.0, 40.0]))
    double = jnp.dtype("float64")
    laws = jax.jit(jax.vmap(lambda r, h: (_transition(r, h, double), _bridge(r, h[None], double))))
    (pull, spread), (bridge_pull, bridge_spread) = laws(jnp.asarray(rates), jnp.asarray(lengths))
    r, h = rates.astype(np.longdouble), lengths.astype(np.longdouble)
    end, middle = -np.expm1(-2 * r * h) / (2 * r), -np.expm1(-r * h) / (2 * r)
    cross = np.exp(-r * h / 2) * middle
    np.testing.assert_allclose(pull, np.exp(-r * h).astype(float), rtol=1e-13)
    np.testing.assert_allclose(spread, np.sqrt(end).astype(float), rtol=1e-14)
    np.testing.assert_allclose(bridge_pull[:, 0], (cross / end).astype(float), rtol=1e-13)
    np.testing.assert_allclose(bridge_spread[:, 0], np.sqrt(middle - cross**2 / end).astype(float), rtol=1e-11)


@pytest.mark.parametrize(
    ("ts", "message"),
    [
        ([-0.1, 1.0], "ts must not be negative.*-0.1"),
        ([0.0, 2.0, 1.0], "ts must increase strictly.*index 1"),
        ([0.0, np.inf], "ts must be finite"),
        ([0.0, 1e10], "larger unit"),
    ],
)
def test_times_of_noise_are_checked(ts, message):
    with pytest.raises(ValueError, match=message):
        Brownian(jnp.zeros(2)).sample(KEYS[0], ts)


@pytest.mark.parametrize("options", [{"unit": 0.0}, {"unit": -1.0}, {"unit": np.inf}, {"depth": -1}, {"depth": 31}])
def test_clock_is_checked(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Brownian(jnp.zeros(2), **options)
