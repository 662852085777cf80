"""Products whose rounding does not depend on the program around them."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def rounded(product: Float[Array, "..."]) -> Float[Array, "..."]:
    """`product` itself, but rounded before it enters a sum.

    Compilers contract a product and a sum into one operation with one rounding, in one program and not in the next.
    They cannot see through the bounds here, which no finite number exceeds; so the same noise is bitwise the same
    alone, under vmap, in a loop, and for any set of times.
    """
    most = float(jnp.finfo(product.dtype).max)
    return jnp.clip(product, -most, most)
