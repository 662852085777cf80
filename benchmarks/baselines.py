"""One drift, x_i' = P_x (1/h) Σ_h V_h A_h(x_i), written as people write it elsewhere.

Each maker takes tokens (n, d), score and value matrices (h, d, d) as NumPy arrays and returns functions without
arguments: the drift, and where there is one the gradient of Σ c_i · x_i' in tokens and matrices.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

try:
    import torch
    from torch.nn.functional import scaled_dot_product_attention
except ImportError:  # the table then has no such column
    torch = None


class Contestant(NamedTuple):
    """Calls to time. `bytes_needed` bounds the memory of the forward and of the gradient call, where it is known."""

    drift: Callable
    gradient: Callable | None
    bytes_needed: tuple[int, int] = (0, 0)


def numpy_softmax(x, score, value, c) -> Contestant:
    """NumPy, one head at a time, exponentials in place."""

    def drift():
        total = np.zeros_like(x)
        for B, V in zip(score, value, strict=True):
            scores = (x @ B.T) @ x.T
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            total += (scores @ x / scores.sum(axis=1, keepdims=True)) @ V.T
        total /= len(score)
        return total - np.sum(total * x, axis=1, keepdims=True) * x

    return Contestant(drift, None, (4 * len(x) ** 2, 0))


def naive_jax(x, score, value, c) -> Contestant:
    """`einsum`, `softmax`, `einsum`: every score of every head in memory."""

    def drift(x, score, value):
        queries = jnp.einsum("hij,nj->hni", score, x)
        share = jax.nn.softmax(jnp.einsum("hnd,md->hnm", queries, x), axis=-1)
        velocity = jnp.mean(jnp.einsum("hij,hnj->hni", value, jnp.einsum("hnm,md->hnd", share, x)), axis=0)
        return velocity - jnp.sum(velocity * x, axis=-1, keepdims=True) * x

    return jax_contestant(drift, x, score, value, c)


def jax_contestant(drift: Callable, x, score, value, c) -> Contestant:
    """Compiled drift and gradient of a function of (tokens, score, value)."""
    arrays = tuple(map(jnp.asarray, (x, score, value)))

    def loss(*arrays):
        return jnp.sum(drift(*arrays) * c)

    compiled = [jax.jit(f).lower(*arrays).compile() for f in (drift, jax.grad(loss, (0, 1, 2)))]
    needed = tuple(f.memory_analysis().temp_size_in_bytes for f in compiled)
    forward, gradient = compiled
    return Contestant(lambda: forward(*arrays), lambda: gradient(*arrays), needed)


def torch_sdpa(x, score, value, c, device: str = "cpu") -> Contestant:
    """PyTorch's `scaled_dot_product_attention`; its fused kernels want contiguous heads."""
    x, score, value, c = (torch.tensor(np.asarray(a), device=device) for a in (x, score, value, c))

    def drift(x, score, value):
        h, (n, d) = len(score), x.shape
        queries = torch.einsum("hij,nj->hni", score, x).contiguous()[None]
        keys = x.expand(1, h, n, d).contiguous()
        mean = scaled_dot_product_attention(queries, keys, keys, scale=1.0)[0]
        velocity = torch.einsum("hij,hnj->hni", value, mean).mean(0)
        return velocity - (velocity * x).sum(-1, keepdim=True) * x

    def forward():
        with torch.no_grad():
            return drift(x, score, value)

    def gradient():
        leaves = [a.clone().requires_grad_() for a in (x, score, value)]
        (drift(*leaves) * c).sum().backward()
        return [leaf.grad for leaf in leaves]

    return Contestant(forward, gradient)
