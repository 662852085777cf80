"""Arguments that are checked everywhere alike: numbers in a range, and keys."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from transformer_flows._checks import refuse_other_keys, refuse_outside


def test_keys():
    """Typed or raw, of any generator; what is batched by a transformation is one key."""
    for key in (jr.key(0), jr.PRNGKey(0), jr.key(0, impl="rbg"), np.asarray(jr.PRNGKey(0))):
        refuse_other_keys(key, "key", many=False)
    for keys in (jr.split(jr.key(0), 3), jr.split(jr.PRNGKey(0), 3), jr.split(jr.key(0, impl="rbg"), 1)):
        refuse_other_keys(keys, "keys", many=True)
        jax.vmap(lambda key: refuse_other_keys(key, "key", many=False))(keys)
    for wrong, got in (
        (0, "int"),
        ([jr.key(0)], "list"),
        (jr.split(jr.key(0)), r"key<fry> \(2,\)"),
        (jr.split(jr.PRNGKey(0)), r"uint32 \(2, 2\)"),
        (jnp.zeros(2), r"float64 \(2,\)"),
        (jnp.zeros((), "uint32"), r"uint32 \(\)"),
    ):
        with pytest.raises(ValueError, match=r"key must be one key such as jax.random.key\(0\).*; got " + got):
            refuse_other_keys(wrong, "key", many=False)
    for wrong, got in (
        (jr.key(0), r"key<fry> \(\)"),
        (jr.PRNGKey(0), r"uint32 \(2,\)"),
        (jnp.zeros((3, 2)), "float64"),
    ):
        with pytest.raises(ValueError, match=r"keys must be an array of keys \(e,\), one per member.*; got " + got):
            refuse_other_keys(wrong, "keys", many=True)


def test_numbers_in_a_range():
    refuse_outside(jnp.array([-1.0, 1.0 + 1e-7]), "rho", -1.0, 1.0, slack=1e-6)
    refuse_outside(jnp.nan, "t", 0.0)
    jax.jit(lambda t: refuse_outside(t, "t", 0.0))(-1.0)
    for x, least, most, words in (
        (jnp.array([0.0, 2.0]), -1.0, 1.0, r"x must lie in \[-1, 1\]; got 2.0 at index \(1,\)"),
        (-0.1, 0.0, np.inf, "x must be finite and at least 0; got -0.1"),
        (np.inf, 0.0, np.inf, "x must be finite and at least 0; got inf"),
        (1.0 + 1e-5, -1.0, 1.0, r"x must lie in \[-1, 1\]"),
    ):
        with pytest.raises(ValueError, match=words):
            refuse_outside(x, "x", least, most, slack=1e-6)
