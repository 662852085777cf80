"""Gaussian laws of tokens under softmax attention and an affine feed-forward layer: mean and factored covariance."""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import refuse_non_finite
from .._types import HeadMatrices, ScalarLike, as_float
from ..geometry import Gaussian, Gaussians
from ..paths import AbstractPath, AbstractProcess
from ._flow import AbstractFlow

Control = Float[Array, "..."] | AbstractPath | AbstractProcess


class Controls(NamedTuple):
    """The controls at one time, heads along the first axis of `V`, `B` and `c`."""

    A: Float[Array, "d d"]
    V: HeadMatrices
    B: HeadMatrices
    b: Float[Array, "d"]
    c: Float[Array, "h d"]


class GaussianFlow(AbstractFlow):
    """The law N(m, Σ) of tokens with velocity A x + b + V ∫ y e^{⟨Bx + c, y⟩} dμ / ∫ e^{⟨Bx + c, y⟩} dμ.

    The tilted mean is m + Σ(Bx + c), so the velocity is affine and the law stays Gaussian:
    m' = (A + V)m + VΣ(Bm + c) + b and Σ = LLᵀ with L' = (A + VΣB)L, which keeps symmetry, sign and rank. For several
    heads, `V`, `B` `(h, d, d)`, the terms with V are means over heads; one of both, or `c`, may be shared by all.

    `A`, `V`, `B` `(d, d)` and `b`, `c` `(d,)` are arrays, paths or processes; those left out are 0. States are
    `Gaussian`s. Raises `ValueError` for shapes that do not match and values that are not finite. Source: Alcalde, Ji &
    Zuazua, arXiv:2606.07600 (B acts on the query: ⟨Bx, y⟩).
    """

    manifold: Gaussians
    A: Control
    V: Control
    B: Control
    b: Control
    c: Control

    explosive: ClassVar[bool] = True

    def __init__(self, A: Any = None, V: Any = None, B: Any = None, b: Any = None, c: Any = None):
        given = {"A": A, "V": V, "B": B, "b": b, "c": c}
        controls = {name: _as_control(value, name) for name, value in given.items() if value is not None}
        d = _dimension(controls)
        self.manifold = Gaussians(d)
        self.A, self.V, self.B = (controls.get(name, jnp.zeros((d, d))) for name in "AVB")
        self.b, self.c = (controls.get(name, jnp.zeros(d)) for name in "bc")
        if not any(isinstance(control, AbstractProcess) for control in controls.values()):
            eqx.filter_eval_shape(self.controls, 0.0)  # raises where shapes do not match

    def controls(self, t: ScalarLike) -> Controls:
        """The controls at time `t`."""
        d = self.manifold.d
        values = {name: getattr(self, name) for name in "AVBbc"}
        for name, value in values.items():
            values[name] = value = value(t) if isinstance(value, AbstractPath) else value
            core = (d, d) if name in "AVB" else (d,)
            heads = value.shape[: -len(core)]
            if value.shape[-len(core) :] != core or len(heads) > (name in "VBc"):
                shape = f"({', '.join(map(str, core))}{',' if len(core) == 1 else ''})"
                several = f", or heads of it (h, {', '.join(map(str, core))})" if name in "VBc" else ""
                raise ValueError(f"{name} must have shape {shape}{several}; got {value.shape}.")
        counts = {name: value.shape[0] for name, value in values.items() if value.ndim > 1 + (name in "AVB")}
        if len(set(counts.values())) > 1 or 0 in counts.values():
            raise ValueError(f"V, B and c must have one number of heads >= 1; got {counts}.")
        h = max(counts.values(), default=1)
        stack = lambda value, ndim: jnp.broadcast_to(value, (h, *value.shape[-ndim:]))
        return Controls(values["A"], stack(values["V"], 2), stack(values["B"], 2), values["b"], stack(values["c"], 1))

    def affine(self, t: ScalarLike, x: Gaussian) -> tuple[Float[Array, "d d"], Float[Array, "d"]]:
        """(M, u) of the velocity My + u of a token at y, under the law `x`."""
        A, V, B, b, c = (control.astype(x.factor.dtype) for control in self.controls(t))
        seen = jnp.matmul(V, x.factor, precision="highest")  # V L, (h, d, r)
        asked = jnp.einsum("ir,hij->hrj", x.factor, B, precision="highest")  # Lᵀ B
        slope = A + jnp.einsum("hir,hrj->ij", seen, asked, precision="highest") / V.shape[0]
        bias = jnp.einsum("hir,jr,hj->i", seen, x.factor, c, precision="highest") / V.shape[0]
        return slope, b + jnp.matmul(V.mean(axis=0), x.mean, precision="highest") + bias

    def __call__(self, t: ScalarLike, x: Gaussian) -> Gaussian:
        slope, shift = self.affine(t, x)
        moved = jnp.matmul(slope, jnp.column_stack([x.mean, x.factor]), precision="highest")
        return x.replace(moved[:, 0] + shift, moved[:, 1:])

    def check_start(self, x0: Any) -> None:
        """Raise `ValueError` unless `x0` is one finite Gaussian in R^d. Traced values are not checked."""
        d = self.manifold.d
        if not isinstance(x0, Gaussian) or x0.mean.shape != (d,) or x0.factor.ndim != 2:
            got = f"mean {x0.mean.shape}, factor {x0.factor.shape}" if isinstance(x0, Gaussian) else f"{x0!r:.80}"
            raise ValueError(f"x0 must be a Gaussian(mean, cov) in R^{d} (for many, use jax.vmap); got {got}.")
        refuse_non_finite(x0.mean, "x0.mean")
        refuse_non_finite(x0.factor, "x0.factor")


def _as_control(value: Any, name: str) -> Control:
    if isinstance(value, AbstractPath | AbstractProcess):
        return value
    if callable(value):
        raise ValueError(f"{name} must be an array or a path; wrap a function of time as Prescribed({value!r:.40}).")
    value = as_float(value)
    refuse_non_finite(value, name)
    return value


def _dimension(controls: dict[str, Control]) -> int:
    """d, as the first control that is not still to be drawn has it."""
    for name, control in controls.items():
        if isinstance(control, AbstractProcess):
            continue
        value = eqx.filter_eval_shape(control, 0.0) if isinstance(control, AbstractPath) else control
        if getattr(value, "ndim", 0) == 0:
            raise ValueError(f"{name} must be an array with last axis d; got {value!r:.80}.")
        return value.shape[-1]
    raise ValueError("at least one of A, V, B, b, c must be given, to say in which dimension the flow is.")
