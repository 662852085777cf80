"""The gap energy where e^β overflows: in logarithm, near one cluster, and refused."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import transformer_flows as tfl

SPHERE = tfl.Sphere(3)
REST = tfl.RestFlow(SPHERE)
X = SPHERE.uniform(jr.key(3), 7)


def by_definition(x, beta):
    """e^{−β} E_β, in float64."""
    x = np.asarray(x, float)
    return 0.5 * np.mean(-np.expm1(beta * (x @ x.T - 1)))


@pytest.mark.parametrize("beta", [1.0, 80.0, 500.0, 1e5])
def test_the_logarithm_is_finite_for_every_beta(beta, dtype):
    x = X.astype(dtype)
    found, slope = jax.value_and_grad(lambda x: tfl.LogGapEnergy(beta)(0.0, x, REST))(x)
    assert found.dtype == dtype and np.isfinite(slope).all()
    rtol = 1e-12 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(found, beta + np.log(by_definition(X, beta)), rtol=rtol)
    if beta < 88:
        np.testing.assert_allclose(tfl.GapEnergy(beta)(0.0, x, REST), jnp.exp(found), rtol=1e2 * rtol)


def test_near_one_cluster_the_energy_is_representable_beyond_the_exponential():
    x = SPHERE.retract(X[:1] + 1e-8 * jr.normal(jr.key(4), (7, 3))).astype("float32")
    assert jnp.isinf(jnp.exp(jnp.float32(100.0)))
    found = tfl.GapEnergy(100.0)(0.0, x, REST)
    square = np.sum((np.asarray(x, float)[:, None] - np.asarray(x, float)[None]) ** 2, axis=-1)
    np.testing.assert_allclose(found, np.exp(100.0) * 25 * square.mean(), rtol=1e-4)


def test_one_cluster_has_none_and_its_logarithm_says_so():
    x = jnp.broadcast_to(X[:1], X.shape)
    assert tfl.GapEnergy(2.0)(0.0, x, REST) == 0 and tfl.LogGapEnergy(2.0)(0.0, x, REST) == -jnp.inf


def test_padding_is_left_out():
    flow = tfl.AttentionFlow(SPHERE, tfl.Heads.identity(3, beta=1.0), mask=tfl.Padding(jnp.arange(7) < 4))
    np.testing.assert_allclose(tfl.LogGapEnergy(3.0)(0.0, X, flow), 3 + np.log(by_definition(X[:4], 3.0)), rtol=1e-12)


def test_what_overflows_is_refused():
    with pytest.raises(ValueError, match=r"beta must be below 89, where e\^beta overflows; got 100. Take LogGapEnergy"):
        tfl.GapEnergy(jnp.float32(100.0))
    with pytest.raises(ValueError, match=r"beta must be below 710.*got 800"):
        tfl.GapEnergy(800.0)
    for observable in (tfl.GapEnergy, tfl.LogGapEnergy):
        with pytest.raises(ValueError, match="beta must be one positive finite number; got -1"):
            observable(-1.0)
