"""Fourier modes on the circle."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import concrete
from .._types import Tokens
from ._basis import AbstractBasis, chosen_exactness, refuse_other_coefficients
from ._powers import powers
from ._size import same_width, size
from .sphere import Sphere


class FourierModes(AbstractBasis):
    """1, √2 cos θ, √2 sin θ, √2 cos 2θ, … up to `degree` on S¹, with equispaced nodes; k = 2·degree + 1.

    The quadrature is exact for trigonometric polynomials up to the degree `exactness` (None: 3·degree). Raises
    `ValueError` for a degree below 1, or an exactness below 2·degree, for which the modes are not orthogonal.
    """

    degree: int = eqx.field(static=True)
    exactness: int = eqx.field(static=True)
    nodes: Float[Array, "g 2"]
    weights: Float[Array, "g"]
    values: Float[Array, "g k"]
    gradients: Float[Array, "k g 2"]

    def __init__(self, degree: int, *, exactness: int | None = None):
        self.degree = size(degree, "degree", 1)
        self.exactness = chosen_exactness(self.degree, exactness)
        count = self.exactness + 1
        angles = 2 * np.pi * np.arange(count) / count
        nodes = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        values = fourier_modes(nodes, self.degree)
        # ∇cos kθ = -k sin kθ e_θ and ∇sin kθ = k cos kθ e_θ
        slopes = np.zeros_like(values)
        orders = np.arange(1, self.degree + 1)
        slopes[:, 1::2], slopes[:, 2::2] = -orders * values[:, 2::2], orders * values[:, 1::2]
        along = np.stack([-nodes[:, 1], nodes[:, 0]], axis=-1)
        self.nodes = jnp.asarray(nodes, float)
        self.weights = jnp.full(count, 1 / count, float)
        self.values = jnp.asarray(values, float)
        self.gradients = jnp.asarray(slopes.T[..., None] * along, float)

    @property
    def manifold(self) -> Sphere:
        return Sphere(2)

    @property
    def degrees(self) -> np.ndarray:
        return (np.arange(2 * self.degree + 1) + 1) // 2

    def __call__(self, points: Tokens) -> Float[Array, "n k"]:
        same_width(2, "Sphere", points=points)
        return fourier_modes(points, self.degree)

    def quantiles(self, coefficients: Float[Array, "k"], n: int) -> Tokens:
        """`n` tokens at the quantiles (i + ½)/n of a positive density of mass 1, from the first axis on `(n, 2)`.

        Where equispaced points go under the smooth map that makes the density of the uniform one: sums over them are
        integrals up to an error that falls faster than any power of n. Differentiable once in the coefficients.
        Raises `ValueError` for coefficients of another number or mass, and a density that is not positive at the nodes.
        """
        refuse_other_coefficients(self, coefficients)
        value = concrete(coefficients)
        if value is not None:
            least = (np.asarray(self.values) @ value).min()
            if not (abs(value[0] - 1) < 1e-5 and least > 0):
                raise ValueError(
                    f"the density must be positive and of mass 1; got mass {value[0]:.4g}, least value {least:.4g}."
                )
        return _quantiles(self.degree, coefficients, size(n, "n", 1))


@functools.partial(jax.jit, static_argnums=(0, 2))
def _quantiles(degree: int, coefficients: Float[Array, "k"], n: int) -> Tokens:
    orders = jnp.arange(1, degree + 1, dtype=coefficients.dtype)[None]
    cosines, sines = (2**0.5 * part[None] / orders for part in (coefficients[1::2], coefficients[2::2]))

    def share(angle):
        """∫ ρ dσ from the angle 0 on."""
        turns = angle[:, None] * orders
        waves = cosines * jnp.sin(turns) + sines * (1 - jnp.cos(turns))
        return (coefficients[0] * angle + jnp.sum(waves, axis=1)) / (2 * jnp.pi)

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        below = share(middle) < wanted
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    wanted = (jnp.arange(n, dtype=coefficients.dtype) + 0.5) / n
    ends = jnp.zeros_like(wanted), jnp.full_like(wanted, 2 * jnp.pi)
    angle = jax.lax.stop_gradient(jax.lax.fori_loop(0, 60, halve, ends)[0])
    # a step of Newton's: nothing is left to gain, but its derivative is that of the quantile
    rate = jax.vmap(jax.grad(lambda a: share(a[None])[0]))(angle)
    angle -= (share(angle) - wanted) / jax.lax.stop_gradient(rate)
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


def fourier_modes(points: Any, degree: int) -> Any:
    xp = np if isinstance(points, np.ndarray) else jnp
    real, imaginary = powers(points[:, 0], points[:, 1], degree)
    pairs = 2**0.5 * xp.stack([real[1:], imaginary[1:]], axis=1).reshape(2 * degree, -1)
    return xp.concatenate([real[:1], pairs]).T
