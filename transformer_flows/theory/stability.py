"""How fast two clouds under the same weights can part: the Grönwall estimate behind stability (arXiv:2605.18870)."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import concrete
from .._types import as_float


def largest_norm(matrices: Float[ArrayLike, "*batch h d d"]) -> Float[Array, "*batch"]:
    """Λ = max_h ‖D_h‖, the largest operator norm among the heads."""
    return jnp.max(jnp.linalg.norm(jnp.asarray(matrices), ord=2, axis=(-2, -1)), axis=-1)


def gronwall_rate(norm: ArrayLike) -> Float[Array, "..."]:
    """C = Λ + Λ² + (Λ + 2Λ²)e^{2Λ}, for which W_2(μ_t, ν_t) <= e^{Ct} W_2(μ_0, ν_0).

    Λ = `norm` is that of `largest_norm`; softmax attention on the sphere under tied heads of either sign, both clouds
    under the same weights, W_2 with the geodesic distance.
    """
    norm = as_float(norm)
    value = concrete(norm)
    if value is not None and not (value >= 0).all():
        raise ValueError(f"norm must be at least 0; got {value}.")
    square = norm**2
    return norm + square + (norm + 2 * square) * jnp.exp(2 * norm)


def gronwall_exponent(ts: Float[ArrayLike, "_"], norms: Float[ArrayLike, "_"]) -> Float[Array, "_"]:
    """∫ C(Λ_s) ds from ts[0] to each of `ts`, for weights that move: W_2 grows by the exponential of it at most.

    By trapezoids. They err upwards, so that the estimate stays one, where the weights are linear between the times:
    Λ is convex there, and C convex and increasing. Elsewhere take `ts` fine.
    """
    ts, rates = as_float(ts), gronwall_rate(norms)
    if ts.ndim != 1 or rates.shape != ts.shape:
        raise ValueError(f"ts and norms must have one shape (t,); got {ts.shape} and {rates.shape}.")
    value = concrete(ts)
    if value is not None and not (np.diff(value) > 0).all():
        raise ValueError(f"ts must increase; got {value}.")
    steps = jnp.diff(ts) * (rates[1:] + rates[:-1]) / 2
    return jnp.concatenate([jnp.zeros_like(rates[:1]), jnp.cumsum(steps)])
