"""Powers of ρ in the kernels of activations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from transformer_flows.theory import ActivationKernel

ACTIVATIONS = (jax.nn.relu, jax.nn.identity, jax.scipy.special.erf, jnp.sin, jnp.cos, jnp.tanh, jax.nn.silu)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda activation: activation.__name__)
def test_the_powers_add_up_to_the_kernel(activation):
    kernel = ActivationKernel(activation, 5, 0.2, 0.1, 0.03)
    powers = kernel.maclaurin(24)
    rho = jnp.linspace(-0.5, 0.5, 11)
    np.testing.assert_allclose(jnp.polyval(powers[::-1], rho), kernel(rho), atol=1e-12)
    assert (powers >= 0).all() and 0 <= float(kernel(1.0) - powers.sum()) + 1e-15 < 1e-4
    # the slope at 0, by differentiation of the kernel itself
    np.testing.assert_allclose(powers[1], jax.grad(lambda r: kernel(r))(0.0), rtol=1e-10)


def test_powers_of_relu_without_bias_are_known():
    """(1/2π)(1 + πρ/2 + ρ²/2 + ρ⁴/24 + ρ⁶/80 + …), times the variance."""
    powers = ActivationKernel(jax.nn.relu, 5, 0.2).maclaurin(6)
    np.testing.assert_allclose(powers / 0.2 * 2 * np.pi, [1, np.pi / 2, 1 / 2, 0, 1 / 24, 0, 1 / 80], atol=1e-15)


def test_derivatives_in_the_scales():
    def third(weight, bias):
        return ActivationKernel(jnp.tanh, 5, weight, bias).maclaurin(3)[3]

    for at in ((0.3, 0.1), (0.3, 0.0)):
        slopes = jax.grad(third, (0, 1))(*at)
        h = 1e-6
        np.testing.assert_allclose(slopes[0], (third(at[0] + h, at[1]) - third(at[0] - h, at[1])) / (2 * h), rtol=1e-6)
        forward = (-3 * third(*at) + 4 * third(at[0], at[1] + h) - third(at[0], at[1] + 2 * h)) / (2 * h)
        np.testing.assert_allclose(slopes[1], forward, rtol=1e-6)
