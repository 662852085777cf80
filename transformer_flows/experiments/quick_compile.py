"""Compiling with few optimisations, where short runs do not repay more of them."""

import os
import subprocess
import sys

XLA_FLAGS = "XLA_FLAGS"
# Starts XLA on the processor without importing JAX, which takes ten times longer.
START = "from jaxlib import xla_client; xla_client.make_cpu_client()"


def compile_quickly(level: int) -> None:
    """Ask XLA for optimisations of `level` alone, 0 (fewest) to 3, from when JAX starts its devices.

    Level 0 compiles four times faster than XLA left alone and its code runs about five times slower; level 1 compiles
    twice as fast, and its code is hardly slower. An XLA_FLAGS that is set, even to nothing, is kept. Processes started
    from this one inherit the flags.
    """
    flags = (
        f"--xla_backend_optimization_level={level} --xla_cpu_use_fusion_emitters=false"
        " --xla_cpu_parallel_codegen_split_count=1"
    )
    if XLA_FLAGS not in os.environ and known(flags):
        os.environ[XLA_FLAGS] = flags


def known(flags: str) -> bool:
    """Whether this XLA has all of the flags. It ends the process at one that it lacks, so another process is asked."""
    asked = subprocess.run([sys.executable, "-c", START], env=os.environ | {XLA_FLAGS: flags}, capture_output=True)
    return asked.returncode == 0
