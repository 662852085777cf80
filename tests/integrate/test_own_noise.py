"""Attention against noise of every token's own: the transition to order at κ = d."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import transformer_flows as tfl
from transformer_flows import theory

N, D = 128, 2


def noisy(kappa):
    attention = tfl.AttentionFlow(tfl.Sphere(D), tfl.Heads.identity(D, beta=0.0))
    return tfl.CommonNoiseFlow(attention, tfl.IdiosyncraticField(N, D, kappa))


def test_tokens_order_above_the_transition_and_fluctuate_below_it(key):
    """κ = 4 and κ = 1 for d = 2, with time averages of members that start at one cluster, and their standard errors.

    Above it the order is that of infinitely many tokens to 1/n. Below it the mean of the tokens is an
    Ornstein–Uhlenbeck process, with the growth rate (d−1)(1/d − 1/κ) and the noise 2(d−1)/(dκn) in each coordinate:
    n E|mean|² is d times their ratio over −2, that is 1/(1 − κ/d).
    """
    members, kappas = 16, jnp.array([4.0, 1.0])
    flows = eqx.filter_vmap(noisy)(jnp.repeat(kappas, members))
    start = jnp.tile(jnp.array([[1.0, 0.0]]), (N, 1))
    ts = jnp.concatenate([jnp.zeros(1), jnp.linspace(6.0, 18.0, 25)])
    solution = tfl.solve_ensemble(
        flows, start, ts, jr.split(key, 2 * members), in_axes=(0, None), dt=0.05,
        observe={"order": tfl.OrderParameter()}, states=False,
    )  # fmt: skip
    order = np.asarray(solution.observed["order"])[:, 1:]
    above, below = order[:members].mean(axis=1), N * (order[members:] ** 2).mean(axis=1)
    error = lambda values: values.std() / members**0.5
    assert abs(above.mean() - theory.stationary_order(4.0, D)) < 3.5 * error(above) + 1 / N < 0.03
    rate = float(theory.noisy_growth_rate(1.0, 0.0, 1, D))
    wanted = D * 2 * (D - 1) / D / (-2 * rate)
    np.testing.assert_allclose(wanted, 1 / (1 - 1 / D))
    assert abs(below.mean() - wanted) < 3.5 * error(below) < 1.2
