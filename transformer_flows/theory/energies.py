"""Interaction energies of the uniform measure on S², for fixed and for random symmetric heads (arXiv:2605.18870)."""

import numpy as np


def uniform_energy() -> float:
    """E(uniform) on S² for D = I: ½ sinh 1."""
    return float(0.5 * np.sinh(1.0))


def uniform_energy_ornstein_uhlenbeck(mean: float = 1.0, noise: float = 2**0.5, rate: float = 1.0) -> float:
    """E(uniform) on S² averaged over the stationary law of D = mean·I + symmetrised noise.

    There Var⟨x,Dy⟩ = (noise²/2·rate)·½(1+⟨x,y⟩²), so the mean of e^{⟨x,Dy⟩} at cosine s is
    e^{mean·s + noise²(1+s²)/8·rate} and the energy is ¼∫_{-1}^{1} of it.
    """
    nodes, weights = np.polynomial.legendre.leggauss(64)
    half_variance = noise**2 / (8 * rate) * (1 + nodes**2)
    return float(0.25 * weights @ np.exp(mean * nodes + half_variance))
