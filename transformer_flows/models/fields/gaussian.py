"""The field that wide random MLPs become: Gaussian, with the kernel of their activation."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._checks import refuse_other_type
from ..._types import Scalar, Tokens
from ...theory import ActivationKernel
from ._field import AbstractField, refuse_other_shapes
from ._realisation import AbstractFactor, AbstractRealisation
from .harmonics import Harmonics
from .monomials import Monomials

_MOST_MODES = 1000


class GaussianField(AbstractField):
    """B(t, x) with E[B_i(t, x) B_j(s, y)] = min(t, s) k(⟨x, y⟩) δ_ij on the unit sphere, common to all tokens.

    B = F(x) W with W of shape `(k, d)` and a factor F by `realisation`: `Harmonics`, `Monomials` and `RandomFeatures`
    are fixed functions of the token (Karhunen–Loève modes), so that one W drives every depth, every number of tokens
    and every step; `Gram` has the exact law at the tokens, in the Itô sense alone. None takes harmonics on S¹ and S²
    and monomials on larger spheres, of a degree that keeps the modes below a thousand. `error` says how far the
    covariance of B is from the kernel.

    Raises `ValueError` for parts of other types, a realisation that has no functions on S^{d−1}, and tokens and
    increments of other shapes. Source: arXiv:2604.26898, the Gaussian field of its limit.
    """

    kernel: ActivationKernel
    realisation: AbstractRealisation
    ready: AbstractFactor | None

    def __init__(self, kernel: ActivationKernel, realisation: AbstractRealisation | None = None):
        refuse_other_type(kernel, "kernel", ActivationKernel, "a covariance such as ActivationKernel(tanh, d=8, …)")
        refuse_other_type(
            realisation, "realisation", AbstractRealisation | None, "a realisation such as Harmonics(16), or None"
        )
        self.kernel = kernel
        self.realisation = _default(kernel.d) if realisation is None else realisation
        self.realisation.size(kernel)  # refuses what does not fit
        self.ready = None

    @property
    def d(self) -> int:
        return self.kernel.d

    @property
    def like(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((self.realisation.size(self.kernel), self.d), jnp.result_type(float))

    @property
    def depends_smoothly(self) -> bool:
        return self.realisation.depends_smoothly

    @property
    def error(self) -> Scalar:
        """Largest |F Fᵀ − k|; for random features its standard deviation."""
        return self.realisation.error(self.kernel)

    @property
    def factor(self) -> AbstractFactor:
        """F, a function of tokens `(n, d)` that returns `(n, k)`."""
        return self.realisation.factor(self.kernel) if self.ready is None else self.ready

    def __call__(self, x: Tokens, dw: Float[Array, "k d"]) -> Tokens:
        refuse_other_shapes(self, x, dw)
        return jnp.matmul(self.factor(x).astype(x.dtype), dw.astype(x.dtype), precision="highest")

    def ito_drift(self, x: Tokens) -> Tokens:
        return self.factor.ito_drift(x).astype(x.dtype)

    def prepared(self) -> "GaussianField":
        return eqx.tree_at(lambda field: field.ready, self, self.factor, is_leaf=lambda leaf: leaf is None)


def _default(d: int) -> AbstractRealisation:
    """A number of modes that is quick to evaluate: harmonics for d = 2 and 3, else monomials of the largest degree."""
    if d <= 3:
        return Harmonics(32 if d == 2 else 16)
    degree = max(l for l in range(_MOST_MODES) if math.comb(d + l, l) <= _MOST_MODES)
    if degree < 2:
        raise ValueError(
            f"give the realisation of a field in R^{d}: Monomials(2) has {math.comb(d + 2, 2)} modes; "
            "RandomFeatures(key, d, count) and, for Itô flows, Gram(n) are the others."
        )
    return Monomials(degree)
