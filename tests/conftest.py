"""Strict numerics for every test: float64 available, no silent rank promotion, fixed keys."""

import jax
import jax.random as jr
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key():
    return jr.key(2026)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param
