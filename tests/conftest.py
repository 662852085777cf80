"""Strict numerics for every test: float64 available, no silent rank promotion, fixed keys.

Most of the time of the tests is compilation, so they compile with few optimisations, four times faster. An XLA_FLAGS
that is set, even to nothing, is kept: `XLA_FLAGS= pytest` tests the code as users run it.
"""

import os
import subprocess
import sys

import jax
import jax.random as jr
import pytest

QUICK_TO_COMPILE = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)


def _known(flags: str) -> bool:
    """XLA ends the process at a flag that its version does not have."""
    start = [sys.executable, "-c", "import jax; jax.devices()"]
    return subprocess.run(start, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True).returncode == 0


if "XLA_FLAGS" not in os.environ and _known(QUICK_TO_COMPILE):
    os.environ["XLA_FLAGS"] = QUICK_TO_COMPILE  # read when JAX starts its devices; test workers inherit it

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key():
    return jr.key(2026)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param
