"""Which backend a flow uses when its user names none."""

import jax

from ._backend import AbstractBackend
from .blockwise import Blockwise
from .dense import Dense

# Scores at a time. CPU: 4 or 8 MB, which stay in the cache. Accelerator: 0.5 or 1 GB of its memory, and few launches.
_CPU = 2**20
_ACCELERATOR = 2**27


def choose_backend(n: int, h: int, d: int, platform: str | None = None) -> AbstractBackend:
    """Backend for `n` tokens attending to `n` points with `h` heads in dimension `d`.

    All scores at once while they fit; beyond, blocks of queries: as many as keep a block of scores in the cache of a
    CPU, but enough to keep its matrix products efficient, and few large ones on an accelerator. `platform` is "cpu",
    "gpu" or "tpu" (None: where JAX puts arrays by default).
    """
    platform = jax.default_backend() if platform is None else platform
    at_once = _CPU if platform == "cpu" else _ACCELERATOR
    if h * n * n <= at_once:
        return Dense()
    if platform != "cpu":
        return Blockwise(block=max(256, at_once // n))
    fewest = 128 if d < 16 else 256
    return Blockwise(block=min(max(at_once // n, fewest), 512))
