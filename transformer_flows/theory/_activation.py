"""What a function must do to be an activation: act on arrays entry by entry, and yield numbers."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from .._checks import concrete

_PROBE = np.array([[-2.0, 0.3, 1.1], [0.7, -0.9, 2.5]])


def check_activation(activation: Callable) -> None:
    """Raise `ValueError`, naming the activation and what it did, unless it acts entry by entry on what is probed.

    Its values are not checked where they are traced.
    """
    if not callable(activation):
        raise ValueError(f"activation must be a function of arrays such as jax.numpy.tanh; got {activation!r}.")
    for shape in (_PROBE.shape, (1, 1)):
        _check_shapes(activation, shape)
    refuse_nan(activation, _PROBE)
    together = _values(activation, _PROBE)
    if together is None:
        return
    for x, one in zip(_PROBE.flat, together.flat, strict=True):
        alone = _values(activation, np.full((1, 1), x))
        assert alone is not None  # as it is among others
        other = alone.item()
        if not np.isclose(one, other, rtol=1e-4, atol=1e-6):  # vectors may be computed otherwise than their remainders
            raise ValueError(
                f"activation must act entry by entry; {name_of(activation)} makes {one:.6g} of the entry {x:g} among "
                f"others, and {other:.6g} of that entry alone."
            )


def refuse_nan(activation: Callable, points: ArrayLike) -> None:
    """Raise `ValueError` naming the activation and a point at which it is NaN. Traced values are not checked."""
    values = _values(activation, points)
    if values is not None and np.isnan(values).any():
        where = np.asarray(points)[np.isnan(values)]
        raise ValueError(
            "activation must be a number wherever the Gaussian reaches; "
            f"{name_of(activation)} makes NaN of {where[np.argmin(np.abs(where))]:.6g}."
        )


def name_of(activation: Callable) -> str:
    return getattr(activation, "__name__", None) or f"{activation!r:.80}"


def _values(activation: Callable, points: Any) -> np.ndarray | None:
    with jax.ensure_compile_time_eval():
        return concrete(activation(jnp.asarray(points)))


def _check_shapes(activation: Callable, shape: tuple[int, int]) -> None:
    must, name = f"activation must act entry by entry; of shape {shape}", name_of(activation)
    out: Any
    try:
        out = eqx.filter_eval_shape(activation, jax.ShapeDtypeStruct(shape, jnp.result_type(float)))
    except Exception as error:
        raise ValueError(f"{must}, {name} raises {type(error).__name__}: {error}".splitlines()[0]) from error
    if not (isinstance(out, jax.ShapeDtypeStruct) and out.shape == shape):
        raise ValueError(f"{must}, {name} makes {getattr(out, 'shape', type(out).__name__)}.")
    if not jnp.issubdtype(out.dtype, jnp.floating):
        raise ValueError(f"activation must make real floating numbers; {name} makes {out.dtype}.")
