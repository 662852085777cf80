"""Noise of every token's own."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike

from ..._checks import concrete, refuse_other_count
from ..._types import Scalar, Tokens, as_float
from ._field import AbstractField, refuse_other_shapes
from ._realisation import isotropic_drift


class IdiosyncraticField(AbstractField):
    """√(2/κ) dW_i with independent Brownian motions of the n tokens in R^d, W `(n, d)`: the temperature is 1/κ.

    Raises `ValueError` for κ that is not positive, and tokens of another number than `n`.
    """

    n: int = eqx.field(static=True)
    d: int = eqx.field(static=True)
    kappa: Scalar

    def __init__(self, n: int, d: int, kappa: ArrayLike):
        refuse_other_count(n, "n", 1)
        refuse_other_count(d, "d", 2)
        value = concrete(kappa)
        if value is not None and not (value.ndim == 0 and value > 0):
            raise ValueError(f"kappa must be one positive number; got {kappa!r}.")
        self.n, self.d = n, d
        self.kappa = as_float(kappa)

    @property
    def like(self):
        return jax.ShapeDtypeStruct((self.n, self.d), jnp.result_type(float))

    @property
    def depends_smoothly(self):
        return True

    def __call__(self, x, dw):
        if x.shape != (self.n, self.d):
            raise ValueError(f"the noise has the shape ({self.n}, {self.d}) of the tokens; got tokens {x.shape}.")
        refuse_other_shapes(self, x, dw)
        return jnp.sqrt(2 / self.kappa).astype(x.dtype) * dw.astype(x.dtype)

    def ito_drift(self, x: Tokens) -> Tokens:
        return isotropic_drift(x, 2 / self.kappa)

    def prepared(self):
        return self
