"""Model problems that know their answers, by routes that share no code with the library (NumPy and SciPy)."""

from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.linalg

import transformer_flows as tfl


class LinearFlow(tfl.AbstractFlow):
    """x' = P_x A x on the sphere: the exact solution is e^{tA} x / |e^{tA} x|."""

    manifold: tfl.Sphere
    A: jnp.ndarray

    def __call__(self, t, x):
        return self.manifold.project(x, x @ self.A.T)

    def exact(self, t, x0):
        moved = np.asarray(x0) @ scipy.linalg.expm(t * np.asarray(self.A)).T
        return moved / np.linalg.norm(moved, axis=-1, keepdims=True)


class PowerFlow(tfl.AbstractFlow):
    """x' = x² in R, exact solution x0/(1 − x0 t): leaves every bound at t = 1/x0."""

    manifold: tfl.Euclidean

    def __call__(self, t, x):
        return x**2


@dataclass(frozen=True)
class MultiHead:
    """n tokens on the sphere under h general heads; reference by DOP853 on a plain NumPy field."""

    n: int = 4
    d: int = 3
    h: int = 2
    seed: int = 1
    sign: int | None = None

    @cached_property
    def heads(self):
        draws = np.random.default_rng(self.seed).normal(size=(2, self.h, self.d, self.d))
        if self.sign is not None:
            return tfl.Heads.tied(draws[0] + draws[0].transpose(0, 2, 1), sign=self.sign)
        return tfl.Heads(draws[0], draws[1])

    @cached_property
    def flow(self):
        return tfl.AttentionFlow(tfl.Sphere(self.d), self.heads)

    @cached_property
    def x0(self):
        x = np.random.default_rng(self.seed + 100).normal(size=(self.n, self.d))
        return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))

    def reference(self, t: float) -> np.ndarray:
        B, V = np.asarray(self.heads.score), np.asarray(self.heads.value)
        field = lambda _, flat: numpy_attention(flat.reshape(self.n, self.d), B, V).ravel()
        out = scipy.integrate.solve_ivp(
            field, (0, t), np.asarray(self.x0).ravel(), method="DOP853", rtol=1e-13, atol=1e-14
        )
        return out.y[:, -1].reshape(self.n, self.d)


def numpy_attention(x: np.ndarray, B: np.ndarray, V: np.ndarray) -> np.ndarray:
    """P_x (1/H) Σ_h V_h softmax(⟨B_h x_i, x_j⟩) x, written from the definition."""
    velocity = np.zeros_like(x)
    for b, v in zip(B, V, strict=True):
        weights = np.exp((x @ b.T) @ x.T)
        weights /= weights.sum(axis=1, keepdims=True)
        velocity += (weights @ x) @ v.T / len(B)
    return velocity - (velocity * x).sum(axis=1, keepdims=True) * x


def equiangular_tokens(n: int, rho: float) -> np.ndarray:
    """n unit vectors in R^n with common cosine rho: rows of a square root of their Gram matrix."""
    gram = rho * np.ones((n, n)) + (1 - rho) * np.eye(n)
    return np.real(scipy.linalg.sqrtm(gram))


def scalar_law(rate, rho0: float, ts) -> np.ndarray:
    """A scalar law ρ' = rate(ρ) solved to near rounding."""
    out = scipy.integrate.solve_ivp(
        lambda t, r: np.asarray(rate(r)), (0, ts[-1]), [rho0], method="DOP853", rtol=1e-13, atol=1e-15, t_eval=ts
    )
    return out.y[0]


class CountingFlow(tfl.AbstractFlow):
    """A flow that counts how often it is traced."""

    inner: tfl.AttentionFlow
    counter: list = eqx.field(static=True)

    @property
    def manifold(self):
        return self.inner.manifold

    def __call__(self, t, x):
        self.counter.append(None)
        return self.inner(t, x)
