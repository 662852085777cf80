"""Which backend a flow uses when its user names none."""

import jax

from ._backend import AbstractBackend
from .blockwise import Blockwise
from .dense import Dense

# Numbers of scores in memory at once. All of them while they are few: on a CPU for XLA to share between calls, on an
# accelerator 0.5 or 1 GB. Beyond, blocks: on a CPU 8 or 16 MB, which stay in the cache.
_ALL_ON_CPU = 2**20
_ALL_ELSEWHERE = 2**27
_BLOCK = 2**21


def choose_backend(n: int, h: int, d: int, platform: str | None = None) -> AbstractBackend:
    """Backend for `n` tokens attending to `n` points with `h` heads in dimension `d`.

    All scores at once while they fit; beyond, blocks of queries: as many as keep a block of scores in the cache of a
    CPU, but enough to keep its matrix products efficient, and few large ones on an accelerator. `platform` is "cpu",
    "gpu" or "tpu" (None: where JAX puts arrays by default).
    """
    platform = jax.default_backend() if platform is None else platform
    at_once = _ALL_ON_CPU if platform == "cpu" else _ALL_ELSEWHERE
    if h * n * n <= at_once:
        return Dense()
    if platform != "cpu":
        return Blockwise(block=max(256, at_once // n))
    fewest = 128 if d < 16 else 512
    return Blockwise(block=min(max(_BLOCK // n, fewest), 1024))
