"""Powers of x + iy: on the unit circle cos mφ and sin mφ, and polynomials everywhere."""

from typing import Any

import jax.numpy as jnp
import numpy as np


def powers(x: Any, y: Any, degree: int) -> tuple[Any, Any]:
    """Real and imaginary parts of (x + iy)^m for m = 0 … `degree`, `(degree + 1, n)`; in NumPy for NumPy arrays."""
    xp = np if isinstance(x, np.ndarray) else jnp
    real, imaginary = x[None], y[None]
    # the first m powers times the last of them are the next m: few operations to compile
    while real.shape[0] < degree:
        a, b = real[-1:], imaginary[-1:]
        real, imaginary = (
            xp.concatenate([real, real * a - imaginary * b]),
            xp.concatenate([imaginary, real * b + imaginary * a]),
        )
    ones = xp.ones_like(real[:1])
    return xp.concatenate([ones, real[:degree]]), xp.concatenate([0 * ones, imaginary[:degree]])
