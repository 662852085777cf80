"""The exponential of the scores against NumPy's, with its derivatives of every order."""

import jax
import jax.numpy as jnp
import numpy as np

from transformer_flows.models.backends.exp2 import exp2


def test_accuracy_over_the_whole_range(dtype):
    info = np.finfo(dtype)
    x = np.linspace(info.minexp + 1, 0, 100_001).astype(dtype)
    got = np.asarray(jax.jit(exp2)(x), np.longdouble)
    np.testing.assert_allclose(got, np.exp2(x.astype(np.longdouble)), rtol=2 * info.eps, atol=0)
    assert exp2(jnp.zeros((), dtype)) == 1


def test_exactly_zero_below_the_range(dtype):
    """A masked score is -inf, and must leave no mass behind."""
    x = jnp.array([-jnp.inf, -1e30, 2.0 * np.finfo(dtype).minexp], dtype)
    np.testing.assert_array_equal(jax.jit(exp2)(x), np.zeros(3))
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.grad(exp2)))(x), np.zeros(3))
    assert np.isnan(exp2(jnp.asarray(jnp.nan, dtype)))


def test_derivatives_inside_a_loop():
    """JAX may differentiate through the polynomial instead of by the rule where both meet in a loop."""
    x = jnp.linspace(-40.0, 0.0, 37)

    def second_and_third(x):
        second = jax.grad(jax.grad(exp2))
        return second(x), jax.grad(second)(x)

    second, third = jax.jit(lambda x: jax.lax.map(second_and_third, x))(x)
    np.testing.assert_allclose(second, np.log(2) ** 2 * np.exp2(x), rtol=1e-14)
    np.testing.assert_allclose(third, np.log(2) ** 3 * np.exp2(x), rtol=1e-14)


def test_other_precisions_use_the_native_one():
    x = jnp.array([-3.0, 0.0], jnp.bfloat16)
    assert exp2(x).dtype == jnp.bfloat16
    np.testing.assert_array_equal(exp2(x), [0.125, 1.0])
