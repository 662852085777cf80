"""Attention heads: the matrices of the scores and of the values, averaged over the heads."""

import functools
from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete, refuse_non_finite
from .._types import HeadMatrices, Key, as_float


class AbstractHeads(eqx.Module):
    """Whatever has a `score` matrix B and a `value` matrix V per head.

    Head `k` scores query x against key y by ⟨B_k x, y⟩ (any temperature is part of B) and moves x along V_k times
    the tilted mean of the keys.
    """

    score: eqx.AbstractVar[HeadMatrices]
    value: eqx.AbstractVar[HeadMatrices]

    @abstractmethod
    def symmetrised(self) -> "AbstractHeads":
        """The nearest heads that keep every symmetry of the type; leading axes are allowed.

        A process draws independent normal entries and moves the heads by them after this projection.
        """

    @abstractmethod
    def noise_square(
        self, x_square: Float[Array, "n"], y_square: Float[Array, "h n"], xy_square: Float[Array, "h n"]
    ) -> Float[Array, "h n"]:
        """E⟨N x, y⟩² for the heads' unit noise N on the score, from |x|², the mean of |y|² and that of ⟨x,y⟩²."""


class Heads(AbstractHeads):
    """Heads with independent score and value matrices, both `(h, d, d)`; one matrix `(d, d)` is one head.

    Raises `ValueError` if the two are not stacks of square matrices of one shape, or have no head.
    """

    score: HeadMatrices
    value: HeadMatrices

    def __init__(self, score: ArrayLike, value: ArrayLike):
        self.score = _matrices(score, "score")
        self.value = _matrices(value, "value")
        if self.score.shape != self.value.shape:
            raise ValueError(
                f"score and value must have one shape (h, d, d); got {self.score.shape} and {self.value.shape}."
            )

    def noise_square(self, x_square, y_square, xy_square):
        """Independent standard normal entries: |x|² E|y|²."""
        return x_square[None] * y_square

    def symmetrised(self) -> "Heads":
        return self

    @staticmethod
    def tied(D: ArrayLike, *, sign: int) -> "TiedHeads":
        """Heads with score D and value ±D: the energy's ascent (`sign=1`) or descent (`sign=-1`)."""
        return TiedHeads(D, sign=sign)

    @staticmethod
    def identity(d: int, *, beta: ArrayLike) -> "Heads":
        """One head with score βI and value I: the model of Geshkovski et al. (arXiv:2312.10794).

        An infinite β is refused: it is the attention kind `Hardmax`.
        """
        beta = as_float(beta)
        refuse_non_finite(beta, "beta", "use kind=Hardmax() for the limit of infinite beta")
        eye = jnp.eye(d, dtype=beta.dtype)
        return Heads(beta * eye[None], eye[None])

    @staticmethod
    def from_qkv(Q: ArrayLike, K: ArrayLike, V: ArrayLike) -> "Heads":
        """Heads of query, key and value matrices `(h, k, d)`, `(h, k, d)`, `(h, d, d)`: score KᵀQ.

        No 1/√k is added: scale Q by it where the pretrained layer does.
        """
        Q, K = as_float(Q), as_float(K)
        if Q.shape != K.shape or Q.ndim not in (2, 3):
            raise ValueError(f"Q and K must have one shape (h, k, d) or (k, d); got {Q.shape} and {K.shape}.")
        return Heads(jnp.matmul(jnp.swapaxes(K, -1, -2), Q, precision="highest"), V)


class TiedHeads(AbstractHeads):
    """Heads with one symmetric matrix each, `D: (h, d, d)`: score D and value `sign`·D.

    D is the only leaf, so noise and gradients move score and value together. Raises `ValueError` if D is not
    symmetric (to 1e-5 of its largest entry) or `sign` is not ±1.
    """

    D: HeadMatrices
    sign: int = eqx.field(static=True)

    def __init__(self, D: ArrayLike, *, sign: int):
        self.D = _matrices(D, "D")
        if sign not in (1, -1):
            raise ValueError(f"sign must be +1 (ascent of the energy) or -1 (descent); got {sign!r}.")
        self.sign = sign
        _refuse_asymmetric(self.D)

    @property
    def score(self) -> HeadMatrices:
        return self.D

    @property
    def value(self) -> HeadMatrices:
        return self.sign * self.D

    def symmetrised(self) -> "TiedHeads":
        return eqx.tree_at(lambda heads: heads.D, self, (self.D + jnp.swapaxes(self.D, -1, -2)) / 2)

    def noise_square(self, x_square, y_square, xy_square):
        """Symmetrised noise ½(Z + Zᵀ): ½(|x|² E|y|² + E⟨x,y⟩²)."""
        return 0.5 * (x_square[None] * y_square + xy_square)


@functools.partial(jax.jit, static_argnames=("h", "d"))
def random_symmetric(key: Key, *, h: int, d: int) -> Float[Array, "{h} {d} {d}"]:
    """`h` matrices Z + Zᵀ with Z standard normal: the starting heads of arXiv:2605.18870."""
    Z = jr.normal(key, (h, d, d))
    return Z + jnp.swapaxes(Z, -1, -2)


def _matrices(x: ArrayLike, name: str) -> HeadMatrices:
    x = as_float(x)
    x = x[None] if x.ndim == 2 else x
    if x.ndim != 3 or x.shape[1] != x.shape[2] or 0 in x.shape:
        raise ValueError(f"{name} must be square matrices (h, d, d) with h, d >= 1; got shape {x.shape}.")
    refuse_non_finite(x, name)
    return x


def _refuse_asymmetric(D: HeadMatrices) -> None:
    value = concrete(D)
    if value is None:
        return
    gap = np.abs(value - np.swapaxes(value, -1, -2)).max(axis=(-1, -2))
    bad = np.flatnonzero(gap > 1e-5 * np.abs(value).max(axis=(-1, -2)))
    if bad.size:
        raise ValueError(
            f"D must be symmetric for tied heads; head {bad[0]} differs from its transpose by {gap[bad[0]]:.2g}. "
            "Symmetrise it, (D + D.T) / 2, or use Heads(score, value) for independent matrices."
        )
