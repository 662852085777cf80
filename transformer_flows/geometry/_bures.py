"""The Bures distance of covariances, W_2 between centred Gaussians, and the optimal map that is its derivative.

Covariances may be singular: the formulas are in factors, and what rounding leaves of a zero eigenvalue counts as zero.
Eigenvectors have no derivative at repeated eigenvalues, so none is taken: decompositions are constant to derivatives,
which come from the equations that the results solve.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._checks import concrete, refuse_non_finite
from .._types import Scalar

Matrix = Float[Array, "d d"]


def covariance(x: Float[Array, "..."], name: str) -> Matrix:
    """The symmetric part of `x`.

    Raises `ValueError` naming the argument unless `x` is square, finite, symmetric and positive semi-definite, the
    last two within √eps of its largest entry and eigenvalue; an error at run time where `x` is traced.
    """
    if x.ndim != 2 or x.shape[0] != x.shape[1] or x.shape[0] == 0:
        raise ValueError(f"{name} must be a covariance (d, d) with d >= 1; got shape {x.shape}.")
    known, tolerance = concrete(x), float(jnp.finfo(x.dtype).eps) ** 0.5
    symmetric = (x + x.T) / 2
    advice = f"{name} must be finite, symmetric and positive semi-definite (to {tolerance:.1g} of its size)"
    if known is None:
        held = jax.lax.stop_gradient(x)
        eigenvalues = jnp.linalg.eigvalsh((held + held.T) / 2)
        asymmetric = jnp.abs(held - held.T).max() > tolerance * jnp.abs(held).max()
        wrong = ~jnp.isfinite(held).all() | asymmetric | (eigenvalues[0] < -tolerance * jnp.abs(eigenvalues).max())
        return eqx.error_if(symmetric, wrong, f"{advice}.")
    refuse_non_finite(known, name)
    defect = np.abs(known - known.T).max()
    if defect > tolerance * np.abs(known).max():
        raise ValueError(f"{advice}; got entries that differ from their mirror image by {defect:.3g}.")
    eigenvalues = np.linalg.eigvalsh((known + known.T) / 2)
    if eigenvalues[0] < -tolerance * np.abs(eigenvalues).max():
        raise ValueError(f"{advice}; got the eigenvalue {eigenvalues[0]:.3g}.")
    return symmetric


@jax.custom_jvp
def squared_bures(x: Matrix, y: Matrix) -> Scalar:
    """tr(x + y - 2(x^{1/2} y x^{1/2})^{1/2}) as |x^{1/2} - y^{1/2}R|² with the rotation R that makes it least.

    So it is never negative, and 0 at x = y to the square of rounding. Its derivative is ⟨I - T_xy, dx⟩ + ⟨I - T_yx, dy⟩
    with T the `optimal_map`: the zero matrix at x = y. Source: Bhatia, Jain & Lim, Expo. Math. 2019.
    """
    a, b = _root(x), _root(y)
    left, _, right = jnp.linalg.svd(product(b, a))
    return jnp.sum((a - product(b, left, right)) ** 2)


@squared_bures.defjvp
def _squared_bures_rule(primals: tuple[Matrix, Matrix], tangents: tuple[Matrix, Matrix]) -> tuple[Scalar, Scalar]:
    one = jnp.eye(primals[0].shape[0], dtype=primals[0].dtype)
    x, y = primals
    slopes = one - optimal_map(x, y), one - optimal_map(y, x)
    # JAX loses a custom rule that is called in a rule, inside a loop that is differentiated twice. So the value is
    # written for plain differentiation: the trapezoidal rule of its own slope, from here to here.
    value = squared_bures(*jax.lax.stop_gradient(primals))
    for z, slope in zip(primals, slopes, strict=True):
        held = jax.lax.stop_gradient((z, slope))
        value += jnp.sum((slope + held[1]) / 2 * (z - held[0]))
    return value, jnp.sum(slopes[0] * tangents[0]) + jnp.sum(slopes[1] * tangents[1])


@functools.partial(jax.jit, inline=True)
def optimal_map(x: Matrix, y: Matrix) -> Matrix:
    """The symmetric T >= 0 that carries N(0, x) to N(0, y): TxT = y, so that `optimal_map(I, y)` is y^{1/2}.

    T = b ((b x b)^{1/2})⁺ b with b = y^{1/2}: no inverse of x. Where x is singular and y is not carried whole, T is
    the part that x determines: the derivative of -½ `squared_bures` in directions that keep the rank of x. Its own
    derivatives are right up to the third.
    """
    held_x, held_y = jax.lax.stop_gradient((x, y))
    start = _map(held_x, held_y)
    invert = _linearisation(held_x, start)
    remainder = held_y - product(start, held_x, start)
    t = start
    for _ in range(2):  # Newton steps, of size 0: each doubles the order to which the derivatives are right
        t += _solve(x, t, y - product(t, x, t) - remainder, invert)
    return t


def _map(x: Matrix, y: Matrix) -> Matrix:
    """The value of `optimal_map`."""
    a, b = _root(x), _root(y)
    left, s, _ = jnp.linalg.svd(product(b, a))
    # relative to the factors, since ranges at right angles leave nothing but rounding
    seen = s > _rounding(x) * jnp.linalg.norm(a) * jnp.linalg.norm(b)
    return product(b, left * inverse(s, seen)[None], left.T, b)


def _solve(x: Matrix, t: Matrix, c: Matrix, invert: Callable[[Matrix], Matrix]) -> Matrix:
    """The z with z x t + t x z = c by `invert`, differentiable in all three by the equation."""

    def equation(z: Matrix) -> Matrix:
        return product(z, x, t) + product(t, x, z)

    def transposed(_: Callable, w: Matrix) -> Matrix:
        return jax.linear_transpose(invert, w)(w)[0]

    return jax.lax.custom_linear_solve(equation, c, lambda _, c: invert(c), transposed)


def _linearisation(x: Matrix, t: Matrix) -> Callable[[Matrix], Matrix]:
    """c to the z with z x t + t x z = c, tangent at `t` to the matrices of its rank; linear in c.

    With t = m mᵀ and mᵀ x m = diag(s), z = m w mᵀ + k mᵀ + m kᵀ; the columns of k are orthogonal to the range of t.
    """
    eigenvalues, q = jnp.linalg.eigh(t)
    held = kept(eigenvalues)
    length = jnp.sqrt(jnp.where(held, eigenvalues, 0))
    half = q * length[None]
    s, v = jnp.linalg.eigh(product(half.T, x, half))
    # the range of t comes last among ascending eigenvalues; on it x is definite
    seen = (jnp.arange(s.size) >= s.size - jnp.sum(held)) & (s > 0)
    m = product(half, v) * seen[None]
    dual = product(q * inverse(length, held)[None], v) * seen[None]  # dualᵀ m = 1
    rest = q * ~held[None]
    pairs = inverse(s[:, None] + s[None], seen[:, None] & seen[None])
    single = inverse(s, seen)[None]

    def invert(c: Matrix) -> Matrix:
        k = product(rest, rest.T, c, dual) * single
        cross = product(k.T, x, m)
        w = (product(dual.T, c, dual) - cross - cross.T) * pairs
        outer = product(k, m.T)
        return product(m, w, m.T) + outer + outer.T

    return invert


def _root(x: Matrix) -> Matrix:
    """x^{1/2}, eigenvalues within rounding of 0 taken as 0."""
    eigenvalues, q = jnp.linalg.eigh(x)
    return product(q * jnp.sqrt(jnp.where(kept(eigenvalues), eigenvalues, 0))[None], q.T)


def kept(eigenvalues: Float[Array, "d"]) -> Bool[Array, "d"]:
    return eigenvalues > _rounding(eigenvalues) * jnp.max(jnp.abs(eigenvalues))


def _rounding(x: Float[Array, "d *_"]) -> float:
    return x.shape[0] * float(jnp.finfo(x.dtype).eps)


def inverse(x: Float[Array, "*_"], where: Bool[Array, "*_"]) -> Float[Array, "*_"]:
    return jnp.where(where, 1 / jnp.where(where, x, 1), 0)


def product(*matrices: Float[Array, "_ _"]) -> Float[Array, "_ _"]:
    return jnp.linalg.multi_dot(matrices, precision="highest")
