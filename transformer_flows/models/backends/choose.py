"""Which backend a flow uses when its user names none."""

import jax

from ._backend import AbstractBackend
from .blockwise import Blockwise
from .dense import Dense

_CPU_SCORES = 2**20
_GPU_SCORES = 2**28


def choose_backend(n: int, h: int, d: int, platform: str | None = None) -> AbstractBackend:
    """Backend for `n` tokens attending to `n` points with `h` heads in dimension `d`.

    `platform` is `"cpu"`, `"gpu"` or `"tpu"` (None: where JAX puts arrays by default). All scores at once while they
    fit; then blocks of queries, which on a CPU stay in its cache and on an accelerator are few and large.
    """
    platform = jax.default_backend() if platform is None else platform
    limit = _CPU_SCORES if platform == "cpu" else _GPU_SCORES
    if n * n * h <= limit:
        return Dense()
    return Blockwise(block=256) if platform == "cpu" else Blockwise(block=max(256, limit // max(n, 1)))
