"""Modes on spheres of any dimension: the monomials in the coordinates."""

import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._checks import refuse_other_count
from ..._types import Scalar
from ...theory import ActivationKernel
from ._realisation import AbstractFactor, AbstractIsotropicModes, isotropic_drift, root


class Monomials(AbstractIsotropicModes):
    """√(a_l l!/α!) x^α for all exponents |α| = l up to `degree`, a_l being the kernel's `maclaurin` coefficients.

    By the multinomial theorem F Fᵀ = Σ a_l ⟨x, y⟩^l: the same law for every rotation of the tokens, and exact but for
    the powers beyond `degree`. There are (d + degree)!/(d! degree!) modes: for small d, or smooth activations.
    """

    degree: int = eqx.field(static=True)

    def __init__(self, degree: int):
        refuse_other_count(degree, "degree", 1)
        self.degree = degree

    def size(self, kernel: ActivationKernel) -> int:
        return math.comb(kernel.d + self.degree, self.degree)

    def coefficients(self, kernel):
        return kernel.maclaurin(self.degree)

    def factor(self, kernel):
        coefficients = self.coefficients(kernel)
        table = _table(kernel.d, self.degree)
        scales = root(coefficients)[table.degree] * jnp.asarray(table.multinomial, coefficients.dtype)
        return _MonomialFactor(kernel.d, self.degree, scales, jnp.sum(coefficients))


class _MonomialFactor(AbstractFactor):
    d: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    scales: Float[Array, "k"]
    variance: Scalar

    def __call__(self, x):
        table = _table(self.d, self.degree)
        rows = [jnp.ones((x.shape[0], 1), x.dtype)]
        for parent, variable in zip(table.parent, table.variable, strict=True):
            rows.append(rows[-1][:, parent] * x[:, variable])
        return jnp.concatenate(rows, axis=1) * self.scales[None].astype(x.dtype)

    def ito_drift(self, x):
        return isotropic_drift(x, self.variance)


class _Table(NamedTuple):
    """How every monomial of degree l >= 1 is one of degree l − 1 times a coordinate; its degree and √(l!/α!)."""

    parent: list[np.ndarray]
    variable: list[np.ndarray]
    degree: np.ndarray
    multinomial: np.ndarray


@functools.cache
def _table(d: int, degree: int) -> _Table:
    parents, variables = [], []
    last = np.zeros(1, int)  # the last coordinate in each monomial: the next one is that or a later one
    power = np.zeros(1, int)  # how often it occurs
    roots = [np.ones(1)]
    for l in range(1, degree + 1):
        parent = np.repeat(np.arange(last.size), d - last)
        variable = np.concatenate([np.arange(first, d) for first in last])
        power = np.where(variable == last[parent], power[parent] + 1, 1)
        # l!/α! is that of the parent times l over the new power of the coordinate
        roots.append(roots[-1][parent] * np.sqrt(l / power))
        parents.append(parent)
        variables.append(variable)
        last = variable
    degrees = np.repeat(np.arange(degree + 1), [row.size for row in roots])
    return _Table(parents, variables, degrees, np.concatenate(roots))
