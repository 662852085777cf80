"""Real spherical harmonics on S²."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Tokens
from ._basis import AbstractBasis, chosen_exactness
from ._powers import powers
from ._size import same_width, size
from .sphere import Sphere


class SphericalHarmonics(AbstractBasis):
    """Real spherical harmonics up to `degree` on S², with Gauss–Legendre × Fourier nodes; k = (degree + 1)².

    Degree l holds positions l² … l² + 2l: Y_{l,m} for m = -l … l, with sin |m|φ for m < 0 and cos mφ for m > 0, where
    φ turns from the first to the second axis and the third is the pole. Y_{1,m} = √3 (x_2, x_3, x_1).

    They are evaluated as polynomials in the coordinates, without angles, so they are smooth at the poles. The
    quadrature is exact for polynomials up to the degree `exactness` (None: 3·degree). Raises `ValueError` for a
    degree below 1, or an exactness below 2·degree, for which the functions are not orthogonal.
    """

    degree: int = eqx.field(static=True)
    exactness: int = eqx.field(static=True)
    nodes: Float[Array, "g 3"]
    weights: Float[Array, "g"]
    values: Float[Array, "g k"]
    gradients: Float[Array, "k g 3"]

    def __init__(self, degree: int, *, exactness: int | None = None):
        self.degree = size(degree, "degree", 1)
        self.exactness = chosen_exactness(self.degree, exactness)
        nodes, weights = _quadrature(self.exactness)
        self.nodes = jnp.asarray(nodes, float)
        self.weights = jnp.asarray(weights, float)
        self.values = jnp.asarray(spherical_harmonics(nodes, self.degree), float)
        self.gradients = jnp.asarray(_gradients(nodes, self.degree), float)

    @property
    def manifold(self) -> Sphere:
        return Sphere(3)

    @property
    def degrees(self) -> np.ndarray:
        return np.repeat(np.arange(self.degree + 1), 2 * np.arange(self.degree + 1) + 1)

    def __call__(self, points: Tokens) -> Float[Array, "n k"]:
        same_width(3, "Sphere", points=points)
        return spherical_harmonics(points, self.degree)


def _quadrature(exactness: int) -> tuple[np.ndarray, np.ndarray]:
    heights, of_height = np.polynomial.legendre.leggauss(exactness // 2 + 1)
    turns = exactness + 1
    angles = 2 * np.pi * np.arange(turns) / turns
    z, phi = (grid.ravel() for grid in np.meshgrid(heights, angles, indexing="ij"))
    radius = np.sqrt(1 - z**2)
    nodes = np.stack([radius * np.cos(phi), radius * np.sin(phi), z], axis=-1)
    return nodes, np.repeat(of_height / 2, turns) / turns


def spherical_harmonics(points: Any, degree: int) -> Any:
    """Y_{l,m} = Q_{l,m}(z) times the real (m >= 0) or imaginary part of (x + iy)^|m|, `(n, k)`."""
    xp = np if isinstance(points, np.ndarray) else jnp
    real, imaginary = powers(points[:, 0], points[:, 1], degree)
    rows = []
    for l, q in enumerate(_legendre(points[:, 2][None], degree)):
        rows += [(q * imaginary)[l:0:-1], (q * real)[: l + 1]]
    return xp.concatenate(rows).T


def _gradients(points: np.ndarray, degree: int) -> np.ndarray:
    """Tangent gradients `(k, n, 3)` of the same polynomials."""
    real, imaginary = powers(points[:, 0], points[:, 1], degree)
    # the derivatives of the real part of (x + iy)^m are m times those of the power m - 1; none for m = 0
    m = np.arange(degree + 1)[:, None]
    a, b = (m * np.concatenate([0 * part[:1], part[:-1]]) for part in (real, imaginary))
    rows = []
    for l, (q, dq) in enumerate(zip(*_legendre_with_slopes(points[:, 2][None], degree), strict=True)):
        of_imaginary = np.stack([q * b, q * a, dq * imaginary], axis=-1)
        of_real = np.stack([q * a, -q * b, dq * real], axis=-1)
        rows += [of_imaginary[l:0:-1], of_real[: l + 1]]
    gradients = np.concatenate(rows)
    return gradients - np.sum(gradients * points, axis=-1, keepdims=True) * points


def _legendre(z: Any, degree: int) -> list[Any]:
    """Q_{l,m}(z) = P̄_{l,m}(z)/(1-z²)^{m/2}, z `(1, n)`; one array `(m, n)` for every l, zero for m > l.

    P̄ are the associated Legendre functions for which the Y_{l,m} are orthonormal. The recurrence in l at fixed m is
    stable (Holmes, Featherstone, J. Geodesy 76 (2002), eq. 11); without the factor nothing underflows at the poles.
    """
    rows = []
    for first, second, seed in _recurrence(degree):
        q = 0 * z + seed.astype(z.dtype)
        if rows:
            q = q + first.astype(z.dtype) * z * rows[-1]
        if len(rows) > 1:
            q = q - second.astype(z.dtype) * rows[-2]
        rows.append(q)
    return rows


def _legendre_with_slopes(z: np.ndarray, degree: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Q and dQ/dz, by the derivative of the recurrence."""
    rows, slopes = _legendre(z, degree), []
    for l, (first, second, seed) in enumerate(_recurrence(degree)):
        slope = 0 * z * seed
        if l > 0:
            slope = slope + first * (rows[l - 1] + z * slopes[l - 1])
        if l > 1:
            slope = slope - second * slopes[l - 2]
        slopes.append(slope)
    return rows, slopes


def _recurrence(degree: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For every l the factors of z Q_{l-1,m} and Q_{l-2,m}, and the value of Q_{l,l}, each `(m, 1)`."""
    m = np.arange(degree + 1)[:, None]
    # Q_{0,0} = 1, Q_{1,1} = √3, Q_{m,m} = √((2m+1)/2m) Q_{m-1,m-1}
    seeds = np.sqrt(np.cumprod([1.0, 3.0, *((2 * k + 1) / (2 * k) for k in range(2, degree + 1))]))
    table = []
    for l in range(degree + 1):
        below = m < l
        inverse = np.where(below, 1.0, 0.0) / np.where(below, (l - m) * (l + m), 1)
        first = np.sqrt((2 * l - 1) * (2 * l + 1) * inverse) if l else 0 * inverse
        second = np.sqrt(np.where(below, (2 * l + 1) * (l + m - 1) * (l - m - 1), 0) * inverse / max(2 * l - 3, 1))
        table.append((first, second, np.where(m == l, seeds[l], 0.0)))
    return table
