"""The Wasserstein distance of two clouds of any sizes, estimated by entropic transport, with rigorous bounds."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, ScalarLike

from .._checks import concrete, refuse_other_count
from .._types import Scalar, as_float
from ..geometry import AbstractManifold
from . import _duality
from ._clouds import Cloud, CloudLike, as_clouds, refuse_traced_non_finite, root

_RELATIVE_EPSILON = 0.01
_DENSE = 2**22  # pairs; 16 to 32 MiB
_BLOCK = 512


class SinkhornDistance(eqx.Module):
    """An estimate `value` of W_2 with `lower` <= W_2 <= `upper`, hence |value - W_2| <= `error`.

    The value is left outside of its bounds where the regularisation puts it there. `converged` tells whether the
    entropic plans reached the tolerance; the bounds hold whether or not they did.
    """

    value: Scalar
    error: Scalar
    lower: Scalar
    upper: Scalar
    converged: Bool[Array, ""]


def sinkhorn_distance(
    x: CloudLike,
    y: CloudLike,
    manifold: AbstractManifold,
    *,
    epsilon: ScalarLike | None = None,
    tolerance: ScalarLike = 1e-4,
    max_iterations: int = 2000,
) -> SinkhornDistance:
    """Root of the Sinkhorn divergence of the clouds `x`, `(n, d)`, and `y`, `(m, d)`, an estimate of their W_2.

    The divergence S_ε = OT_ε(x, y) - ½OT_ε(x, x) - ½OT_ε(y, y) has the squared distance of `manifold` as its cost and
    tends to W_2² as ε → 0; `epsilon` is 1 % of the mean cost between the clouds by default. `tolerance` is the L¹
    defect of a plan's marginal at which the iterations of ott-jax end, `max_iterations` the most that are made.

    `upper` is the cost of a feasible plan (the entropic one, or the matching by debiased potentials, if that costs
    less) and `lower` the dual value of the debiased potentials: both hold for any ε, to the rounding of a sum of n
    terms. S_ε is known to rounding and ε·tolerance only; where it cannot be told from `upper`² it is given as that,
    which is free of cancellation: so the distance of a cloud to itself is 0, and tiny distances keep their digits.

    Work O(nm) per iteration, about mean cost/ε iterations or more. Memory O(nm) up to 2^22 pairs; above that rows of
    costs are computed 512 at a time, again in each iteration. The first call imports ott-jax, which takes seconds.
    `value` has first derivatives in every mode, potentials held at their optimum (0 at value 0); second derivatives
    would be those with potentials held fixed, not the Hessian. The other fields are constant to derivatives.

    Raises `ValueError` for clouds of other dimensions, empty or not finite, and numerics that are not positive.
    Source: Feydy et al., AISTATS 2019; Pooladian, Cuturi & Niles-Weed, ICML 2022 (debiased potentials).
    """
    x, y = as_clouds(x, y, manifold)
    dtype = jnp.result_type(x, y)
    x, y = (refuse_traced_non_finite(cloud, name).astype(dtype) for cloud, name in ((x, "x"), (y, "y")))
    if epsilon is not None:
        epsilon = _positive(epsilon, "epsilon").astype(dtype)
    tolerance = _positive(tolerance, "tolerance").astype(dtype)
    refuse_other_count(max_iterations, "max_iterations", 1)
    return _estimate(x, y, manifold, epsilon, tolerance, max_iterations)


@eqx.filter_jit
def _estimate(
    x: Cloud, y: Cloud, manifold: AbstractManifold, epsilon: Scalar | None, tolerance: Scalar, max_iterations: int
) -> SinkhornDistance:
    from ._potentials import Numerics, own_potential, potential

    block = None if max(x.shape[0], y.shape[0]) ** 2 <= _DENSE else _BLOCK
    xy, xx, yy = (_duality.Problem(*pair, manifold, block) for pair in ((x, y), (x, x), (y, y)))
    scale = jax.lax.stop_gradient(_duality.mean_cost(xy)) if epsilon is not None else _duality.mean_cost(xy)
    scale = eqx.error_if(scale, ~jnp.isfinite(scale), "x and y are too far apart: their squared distances overflow.")
    if epsilon is None:
        epsilon = jnp.where(scale > 0, _RELATIVE_EPSILON * scale, 1)

    numerics = jax.lax.stop_gradient(Numerics(epsilon, tolerance, max_iterations))
    g, converged = potential(jax.lax.stop_gradient(xy), numerics)
    p, p_converged = own_potential(jax.lax.stop_gradient(xx), numerics)
    q, q_converged = own_potential(jax.lax.stop_gradient(yy), numerics)

    divergence = _duality.semi_dual(xy, g, epsilon)
    divergence -= (_duality.semi_dual(xx, p, epsilon) + _duality.semi_dual(yy, q, epsilon)) / 2
    lower, rounding = _duality.lower_bound(xy, g - q)
    entropic = _duality.entropic_plan_cost(xy, g, epsilon)
    upper = jnp.minimum(entropic, _duality.matching_cost(xy, g - q, rounding))

    unknown = rounding + epsilon * tolerance
    value = root(jnp.where(jnp.abs(divergence - upper) <= unknown, upper, divergence))
    lower, upper = jax.lax.stop_gradient((root(jnp.minimum(lower, upper)), root(upper)))
    error = jnp.maximum(upper - jax.lax.stop_gradient(value), jax.lax.stop_gradient(value) - lower)
    return SinkhornDistance(value, error, lower, upper, converged & p_converged & q_converged)


def _positive(x: ScalarLike, name: str) -> Scalar:
    x = as_float(x)
    known = concrete(x)
    if known is None:
        held = jax.lax.stop_gradient(x)
        return eqx.error_if(x, ~((held > 0) & jnp.isfinite(held)), f"{name} must be positive and finite.")
    if known.ndim or not 0 < known < float("inf"):
        raise ValueError(f"{name} must be a positive number; got {known}.")
    return x
