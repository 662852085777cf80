"""Kinds of attention against their definitions, written with NumPy."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from transformer_flows.models import Blockwise, Causal, Dense, Hardmax, Measure, Padding, Softmax, Unnormalised

H, N, D = 2, 6, 3
EXISTS = np.array([True, True, True, False, True, False])


def clouds(key, dtype="float64"):
    """Queries (h, n, d) and tokens (n, d)."""
    one, two = jr.split(key)
    return jr.normal(one, (H, N, D), dtype), jr.normal(two, (N, D), dtype)


def by_definition(kind, queries, x, seen):
    """One query at a time; `seen` (n, n), and every existing token weighs 1/n."""
    out = np.zeros((H, N, D))
    n = seen.any(axis=0).sum()
    for k, i in np.ndindex(H, N):
        y = x[seen[i]]
        scores = y @ queries[k, i]
        if isinstance(kind, Hardmax):
            out[k, i] = y[np.argmax(scores)] if len(y) else 0
        else:
            tilt = np.exp(scores)
            out[k, i] = tilt @ y / n
            if isinstance(kind, Softmax) and len(y):
                out[k, i] /= tilt.sum() / n
    return out


@pytest.mark.parametrize("kind", [Softmax(), Unnormalised(), Hardmax()], ids=lambda kind: type(kind).__name__)
@pytest.mark.parametrize("backend", [Dense(), Blockwise(block=5)], ids=["dense", "blockwise"])
def test_equals_its_definition(kind, backend, key):
    """With no mask, a causal one, and padding, where a query that does not exist gets zero."""
    queries, x = clouds(key)
    everything = np.ones((N, N), bool)
    exists = EXISTS[:, None] & EXISTS[None]
    for mask, measure, seen in (
        (None, Measure(x), everything),
        (Causal(), Measure(x), np.tril(everything)),
        (Padding(jnp.asarray(EXISTS)), Measure(x, mask=jnp.asarray(EXISTS)), exists),
    ):
        got = jax.jit(lambda q, m, mask=mask: kind(backend, q, m, mask))(queries, measure)
        np.testing.assert_allclose(got, by_definition(kind, np.asarray(queries), np.asarray(x), seen), rtol=1e-13)


def test_softmax_tends_to_hardmax(key):
    """The tilted mean at β = 1, 10, …, 1e6 approaches the maximiser, and reaches it."""
    queries, x = clouds(key)
    soft = jax.jit(lambda beta: Softmax()(Dense(), beta * queries, Measure(x), None))
    limit = Hardmax()(Dense(), queries, Measure(x), None)
    gaps = [float(jnp.max(jnp.abs(soft(10.0**k) - limit))) for k in range(7)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0.1
    assert gaps[-1] == 0


def test_unnormalised_is_the_derivative_of_its_mass(key):
    """∇_q ∫ e^{⟨q,y⟩} dμ(y) = ∫ y e^{⟨q,y⟩} dμ(y)."""
    queries, x = clouds(key)
    mass = jax.jit(jax.grad(lambda q: jnp.sum(jnp.exp(Dense()(q, Measure(x), x)[0]))))
    np.testing.assert_allclose(Unnormalised()(Dense(), queries, Measure(x), None), mass(queries), rtol=1e-12)


def test_unnormalised_overflow_is_infinite_where_softmax_is_not():
    """Scores of 100 pass the largest float32; the quotient of the two sums does not."""
    x = jnp.ones((N, 1), "float32")
    queries = jnp.full((H, N, 1), 100.0, "float32")
    assert np.all(np.isinf(Unnormalised()(Dense(), queries, Measure(x), None)))
    np.testing.assert_allclose(Softmax()(Dense(), queries, Measure(x), None), np.ones((H, N, 1)), rtol=1e-6)


def test_hardmax_passes_derivatives_to_the_winners_only(key):
    """Moving the winning token moves the output one to one; scores and other tokens do not matter."""
    queries, x = clouds(key)
    hard = jax.jit(jax.jacrev(lambda q, x: Hardmax()(Dense(), q, Measure(x), None), (0, 1)))
    by_query, by_token = hard(queries, x)
    winners = np.argmax(np.einsum("hid,jd->hij", queries, x), axis=-1)
    expected = np.eye(N)[winners][:, :, None, :, None] * np.eye(D)[None, None, :, None]
    assert not np.any(by_query)
    np.testing.assert_array_equal(by_token, expected)
