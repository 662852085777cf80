"""Strict numerics for every test: float64 available, no silent rank promotion, fixed keys.

Most of the time of the tests is compilation, so they compile with few optimisations, four times faster. An XLA_FLAGS
that is set, even to nothing, is kept: `XLA_FLAGS= pytest` tests the code as users run it.
"""

import jax
import jax.random as jr
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.hookimpl(trylast=True)  # the package is imported after jaxtyping has put its checks in place
def pytest_configure():
    from transformer_flows.experiments.quick_compile import compile_quickly

    compile_quickly(level=0)  # JAX has not started its devices yet; test workers inherit the flags


@pytest.fixture
def key():
    return jr.key(2026)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param
