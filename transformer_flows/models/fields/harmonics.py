"""Karhunen–Loève modes on S¹ and S²."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._checks import refuse_other_count
from ..._types import Scalar
from ...geometry import fourier_modes, spherical_harmonics
from ...theory import ActivationKernel, harmonics_of_degree
from ._realisation import AbstractFactor, AbstractIsotropicModes, isotropic_drift, root

_FUNCTIONS = {2: fourier_modes, 3: spherical_harmonics}


class Harmonics(AbstractIsotropicModes):
    """√(c_l/N_l) Y_{l,m} up to `degree`: Fourier modes for d = 2, spherical harmonics for d = 3.

    c_l are the kernel's `gegenbauer` coefficients and N_l the number of harmonics of degree l: by the addition theorem
    F Fᵀ = Σ c_l P_l. There are 2·degree + 1 modes on S¹ and (degree + 1)² on S².
    """

    degree: int = eqx.field(static=True)

    def __init__(self, degree: int):
        refuse_other_count(degree, "degree", 1)
        self.degree = degree

    def size(self, kernel: ActivationKernel) -> int:
        if kernel.d not in _FUNCTIONS:
            raise ValueError(f"Harmonics are for d = 2 and 3; the kernel has d = {kernel.d}: take Monomials(degree).")
        return int(sum(self._of_degree(kernel)))

    def coefficients(self, kernel):
        # not negative, and known up to the rounding of the quadrature, whose root would be noise in the factor
        found = kernel.gegenbauer(self.degree)
        count = jnp.asarray(self._of_degree(kernel), found.dtype)
        return jnp.where(found > jnp.finfo(found.dtype).eps * count * jnp.sum(found), found, 0)

    def factor(self, kernel):
        coefficients = self.coefficients(kernel)
        count = self._of_degree(kernel)
        deviation = root(coefficients / jnp.asarray(count, coefficients.dtype))
        scales = jnp.repeat(deviation, jnp.asarray(count), total_repeat_length=int(sum(count)))
        return _HarmonicFactor(kernel.d, self.degree, scales, jnp.sum(coefficients))

    def _of_degree(self, kernel: ActivationKernel) -> np.ndarray:
        return harmonics_of_degree(kernel.d, self.degree).astype(int)


class _HarmonicFactor(AbstractFactor):
    d: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    scales: Float[Array, "k"]
    variance: Scalar

    def __call__(self, x):
        return _FUNCTIONS[self.d](x, self.degree) * self.scales[None].astype(x.dtype)

    def ito_drift(self, x):
        return isotropic_drift(x, self.variance)
