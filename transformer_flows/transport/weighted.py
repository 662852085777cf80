"""The Wasserstein distance weighted by the mobility of attention heads."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from .. import theory
from .._checks import concrete, refuse_other_count, refuse_other_type
from .._types import Scalar, Tokens, as_float
from ..dynamics import AttentionFlow
from ..geometry import AbstractManifold, Sphere
from ..models import AbstractHeads
from ._clouds import CloudLike, as_clouds_of_one_size, root
from ._minimise import minimise, refuse_other_tolerance
from .wasserstein import matched_distance, matching_of


class WeightedDistance(eqx.Module):
    """W_{m,2} of two clouds: an upper estimate `value`, and `lower`, `upper` = e^{∓Λ/2} W_2, Λ = max_h ‖D_h‖.

    `path` `(slices + 1, n, d)` are the tokens along the path whose length is `value`. `converged` is False if the
    minimiser ran out of iterations; the value is then the length of the best path found.
    """

    value: Scalar
    lower: Scalar
    upper: Scalar
    path: Float[Array, "s n d"]
    converged: Bool[Array, ""]

    @property
    def between(self) -> Bool[Array, ""]:
        """Whether the value lies between its bounds, to rounding."""
        slack = 8 * jnp.finfo(self.value.dtype).eps * (1 + self.upper)  # tokens have length 1
        return (self.lower - slack <= self.value) & (self.value <= self.upper + slack)


def weighted_distance(
    x: CloudLike,
    y: CloudLike,
    heads: AbstractHeads,
    manifold: AbstractManifold,
    *,
    slices: int = 16,
    tolerance: ArrayLike | None = None,
    max_iterations: int = 1000,
) -> WeightedDistance:
    """W_{m,2}²(μ, ν; Θ) = min ∫_0^1 ∫ b̂_{μ_s}(x) |v_s(x)|² dμ_s ds over paths from `x` to `y`, both `(n, d)`.

    b̂ is the effective mobility of `heads`. Particles keep the matching of W_2 and move along `slices` geodesic arcs,
    whose corners are optimised by L-BFGS from the W_2 path to `tolerance` (1e-6, 1e-3 in single precision). `value` is
    the length of that path (Simpson's rule on each arc), an upper estimate of the infimum that falls at order
    slices^{-2}. Equal to W_2 for D = 0, and to its multiple b̂^{1/2} where the mobility is constant.
    Work O(iterations · slices · h · n²). Differentiable with the matching held fixed.

    Raises `ValueError` as `wasserstein` does, for a manifold other than the sphere (off it scores have no bound), and
    for antipodal partners, which no unique geodesic joins. Source: arXiv:2605.18870, the distance of its geometry.
    """
    _check(heads, manifold, slices, tolerance, max_iterations)
    x, y = as_clouds_of_one_size(x, y, manifold)
    norm = _norm(heads)
    y = y[matching_of(x, y, manifold)]
    if tolerance is None:
        tolerance = 1e-6 if jnp.result_type(float) == jnp.float64 else 1e-3
    # not compiled with the rest, so that an antipodal pair is a ValueError that names it
    start, end = x.astype(float), y.astype(float)
    value, path, converged = _shortest(
        start,
        end,
        manifold.log(start, end),
        heads,
        manifold,
        as_float(tolerance),
        slices=slices,
        max_iterations=max_iterations,
    )
    value, path = value.astype(x.dtype), path.astype(x.dtype)
    distance = matched_distance(x, y, manifold)
    norm = norm.astype(x.dtype)
    return WeightedDistance(value, jnp.exp(-norm / 2) * distance, jnp.exp(norm / 2) * distance, path, converged)


@eqx.filter_jit
def _shortest(
    x: Tokens,
    y: Tokens,
    velocity: Tokens,
    heads: AbstractHeads,
    manifold: AbstractManifold,
    tolerance: Scalar,
    *,
    slices: int,
    max_iterations: int,
) -> tuple[Scalar, Float[Array, "s n d"], Bool[Array, ""]]:
    """The length of the shortest path found, its corners, and whether the minimiser converged.

    `velocity` is that of the geodesics from `x` to `y`. The unknowns are displacements of the corners from the W_2
    path, in sine modes over time each scaled by its eigenvalue: in them the action has a Hessian of about the identity
    for any number of slices.
    """
    flow = AttentionFlow(manifold, jax.tree.map(lambda leaf: leaf.astype(float), heads))
    geodesic = manifold.exp(x[None], jnp.linspace(0, 1, slices + 1)[1:-1, None, None] * velocity[None])
    modes = _sine_modes(slices)
    whole = lambda inner: jnp.concatenate([x[None], inner, y[None]])
    mobility = jax.lax.stop_gradient(jnp.mean(_mobility(flow, x)))
    scale = jnp.sqrt(x.shape[0] / (2 * slices * mobility))

    def corners(z: Float[Array, "k n d"]) -> tuple[Array, Array]:
        shift = scale * jnp.einsum("kj,jnd->knd", modes, z)
        tangent = manifold.project(geodesic, shift)
        return whole(manifold.exp(geodesic, tangent)), shift - tangent

    def objective(z: Float[Array, "k n d"]) -> Scalar:
        path, normal = corners(z)
        return _action(flow, path) + jnp.sum(normal**2) / scale**2  # normal parts move nothing

    found = minimise(
        objective,
        jnp.zeros_like(geodesic),
        tolerance=tolerance,
        rounding=4 * jnp.finfo(x.dtype).eps * mobility * jnp.sum(velocity**2) / len(x),
        max_iterations=max_iterations,
    )
    return root(objective(found.at)), corners(found.at)[0], found.converged


def _action(flow: AttentionFlow, path: Float[Array, "s n d"]) -> Scalar:
    """∫ ∫ b̂ |v|² dμ ds of tokens that move along geodesic arcs between the slices: Simpson's rule on every arc."""
    start, end = path[:-1], path[1:]
    middle = flow.manifold.retract((start + end) / 2)
    mobility = jax.lax.map(lambda x: _mobility(flow, x), jnp.concatenate([path, middle]))
    at, between = mobility[: len(path)], mobility[len(path) :]
    mean = (at[:-1] + 4 * between + at[1:]) / 6
    return len(start) * jnp.sum(jnp.mean(mean * flow.manifold.squared_distance(start, end), axis=1))


def _mobility(flow: AttentionFlow, x: Tokens) -> Float[Array, "n"]:
    return flow.mass(flow.heads(0.0, x), flow.measure(x)).effective_mobility


def _norm(heads: AbstractHeads) -> Scalar:
    """Λ, refused where mobilities, which reach e^{Λ}, would overflow."""
    norm = theory.largest_norm(heads.score)
    value, most = concrete(norm), float(np.log(jnp.finfo(jnp.result_type(float)).max)) - 10
    if value is not None and not value < most:
        raise ValueError(f"heads must have norms below {most:.0f}, beyond which mobilities overflow; got {value:.4g}.")
    return norm


def _sine_modes(slices: int) -> Float[np.ndarray, "k k"]:
    """The eigenvectors of the second difference in time, divided by the roots of their eigenvalues."""
    j = np.arange(1, slices)
    vectors = np.sqrt(2 / slices) * np.sin(np.pi * np.outer(j, j) / slices)
    return vectors / (2 * np.sin(np.pi * j / (2 * slices)))


def _check(heads: Any, manifold: Any, slices: Any, tolerance: Any, max_iterations: Any) -> None:
    refuse_other_type(heads, "heads", AbstractHeads, "heads such as Heads.tied(D, sign=-1)")
    refuse_other_type(manifold, "manifold", Sphere, "a Sphere, on which scores are bounded by the heads")
    refuse_other_count(slices, "slices", 2)
    refuse_other_count(max_iterations, "max_iterations", 1)
    refuse_other_tolerance(tolerance)
