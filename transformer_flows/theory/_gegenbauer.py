"""Gegenbauer polynomials of the sphere S^{d-1}, normalised to 1 at 1, with their quadrature; on the host."""

import functools

import numpy as np
import scipy.special

# A kernel such as that of ReLU is |θ|³ near θ = 0: the rule in the angle errs by a high power of the number of nodes.
_NODES = 400  # or four for each degree


@functools.cache
def gegenbauer_quadrature(d: int, degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes ρ and weights of the law of ⟨x, y⟩ for uniform x, y on S^{d-1} `(g,)`; P_l there `(degree + 1, g)`."""
    nodes, weights = np.polynomial.legendre.leggauss(max(_NODES, 4 * degree))
    theta = np.pi / 2 * (nodes + 1)
    weights = weights * np.sin(theta) ** (d - 2)
    rho = np.cos(theta)
    return rho, weights / weights.sum(), _gegenbauer(d, degree, rho)


def _gegenbauer(d: int, degree: int, x: np.ndarray) -> np.ndarray:
    """(l + d − 2) P_{l+1} = (2l + d − 2) x P_l − l P_{l−1}, which is Chebyshev's recurrence for d = 2."""
    rows = [np.ones_like(x), x]
    for l in range(1, degree):
        rows.append(((2 * l + d - 2) * x * rows[l] - l * rows[l - 1]) / (l + d - 2))
    return np.array(rows[: degree + 1])


def harmonics_of_degree(d: int, degree: int) -> np.ndarray:
    """The number of independent harmonics of every degree on S^{d-1} `(degree + 1,)`."""
    l = np.arange(degree + 1)
    homogeneous = scipy.special.comb(l + d - 1, d - 1)
    return homogeneous - np.concatenate([np.zeros(2), homogeneous])[: degree + 1]
