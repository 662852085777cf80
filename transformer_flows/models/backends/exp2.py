"""2^x for the scores: the native instruction on an accelerator, a polynomial that vectorises on a CPU."""

import math

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

LN2 = math.log(2.0)
LOG2E = 1.0 / LN2

# Near-minimax polynomials of 2^f on [-1/2, 1/2], lowest power first: interpolation in Chebyshev points.
# Relative errors 3e-9 (single) and 4e-18 (double); of the derivatives 4e-7 and 2e-15.
_SINGLE = (
    1.0,
    0.6931472067028326,
    0.24022650922288757,
    0.05550327226670302,
    0.009618056678524637,
    0.0013400428177615838,
    0.0001546144469856913,
)
_DOUBLE = (
    1.0,
    0.6931471805599453,
    0.24022650695910158,
    0.055504108664821625,
    0.009618129107587256,
    0.001333355814640647,
    0.00015403530463724353,
    1.5252733841556773e-05,
    1.3215432535912375e-06,
    1.0178057087733941e-07,
    7.074194297288521e-09,
    4.4558179083360645e-10,
)


@jax.custom_jvp
def exp2(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """2^x, exactly 0 below the normal range (and at -inf)."""
    return lax.platform_dependent(x, cpu=_polynomial, default=lax.exp2)


@exp2.defjvp
def _exp2_jvp(primals, tangents):
    y = exp2(*primals)
    return y, y * (LN2 * tangents[0])


def _polynomial(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """2^n · p(x - n) with n the nearest integer and the power made from exponent bits.

    As a product with a power that has no derivative, this is right under plain autodiff too: JAX falls back on it
    where a rule that calls its own function is differentiated again inside a loop.
    """
    if x.dtype not in (jnp.float32, jnp.float64):
        return lax.exp2(x)
    single = x.dtype == jnp.float32
    integer, mantissa, bias = (jnp.int32, 23, 127) if single else (jnp.int64, 52, 1023)
    x = jnp.maximum(x, -bias)  # whose exponent bits are those of zero
    n = jnp.round(x)
    f = x - n
    # Adding 1.5·2^mantissa puts n + bias in the lowest bits: no conversion to integers, which AVX2 lacks in 64 bits.
    bits = lax.bitcast_convert_type(n + (1.5 * 2**mantissa + bias), integer)
    power = lax.bitcast_convert_type(lax.shift_left(bits, jnp.asarray(mantissa, integer)), x.dtype)
    return _horner(f, _SINGLE if single else _DOUBLE) * power


def _horner(f: Float[Array, "*s"], coefficients: tuple[float, ...]) -> Float[Array, "*s"]:
    p = jnp.full_like(f, coefficients[-1])
    for c in coefficients[-2::-1]:
        p = p * f + c
    return p
