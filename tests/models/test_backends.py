"""Backends against scipy's logsumexp, against finite differences of it, and against each other."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.special import logsumexp

from transformer_flows.models import Blockwise, Causal, Dense, Measure, Padding, choose_backend

H, N, D, V = 2, 7, 3, 2
BACKENDS = {"dense": Dense(), "blockwise": Blockwise(block=4)}  # 14 queries: the last block is padded
EXISTS = np.array([True, True, False, True, True, True, False])
MASKS = {
    "all": (None, None),
    "weights": (None, "signed"),
    "padding": (Padding(jnp.asarray(EXISTS)), None),
    "causal": (Causal(), "positive"),
    "causal padding": (Causal() & Padding(jnp.asarray(EXISTS)), "positive"),
}
both = pytest.mark.parametrize("backend", list(BACKENDS.values()), ids=list(BACKENDS))
cases = pytest.mark.parametrize(("mask", "signs"), list(MASKS.values()), ids=list(MASKS))


def problem(key, signs=None, dtype="float64"):
    """Queries (h, n, d), points (n, d), values (n, v), weights (n,) or None."""
    keys = jr.split(key, 4)
    weights = None
    if signs is not None:  # one negative weight, too small to make a mass negative
        weights = jr.uniform(keys[3], (N,), dtype, 0.5, 2.0)
        weights = weights.at[4].set(-1e-2) if signs == "signed" else weights
    shapes = ((H, N, D), (N, D), (N, V))
    return (*(jr.normal(k, s, dtype) for k, s in zip(keys, shapes, strict=False)), weights)


def seen_by(mask):
    """What each query sees, by the definitions of the masks and a double loop."""
    causal = "Causal" in repr(mask)
    exists = EXISTS if "Padding" in repr(mask) else np.ones(N, bool)
    return np.array([[exists[i] and exists[j] and (j <= i or not causal) for j in range(N)] for i in range(N)]), exists


def oracle(queries, points, values, weights, mask):
    """Log masses and means one query at a time."""
    seen, exists = seen_by(mask)
    weights = np.full(N, 1 / exists.sum()) if weights is None else np.asarray(weights)
    log_mass, mean = np.full((H, N), -np.inf), np.zeros((H, N, values.shape[1]))
    for k, i in np.ndindex(H, N):
        js = np.flatnonzero(seen[i])
        if js.size:
            scores = points[js] @ queries[k, i]
            log_mass[k, i] = logsumexp(scores, b=weights[js])
            share = weights[js] * np.exp(scores - log_mass[k, i])
            mean[k, i] = share @ values[js]
    return log_mass, mean


def loss(backend, mask):
    """A scalar of everything that a backend returns; queries that see nothing are left out."""

    def f(queries, points, values, weights):
        log_mass, mean = backend(queries, Measure(points, weights), values, mask)
        return jnp.sum(jnp.where(jnp.isfinite(log_mass), jnp.sin(log_mass), 0)) + jnp.sum(jnp.cos(mean))

    return f


@both
@cases
def test_equals_logsumexp(backend, mask, signs, key):
    arrays = problem(key, signs)
    log_mass, mean = jax.jit(lambda q, y, v, w: backend(q, Measure(y, w), v, mask))(*arrays)
    expected = oracle(*map(np.asarray, arrays[:3]), arrays[3], mask)
    np.testing.assert_allclose(log_mass, expected[0], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(mean, expected[1], rtol=1e-13, atol=1e-13)
    if isinstance(mask, Padding):
        assert np.all(np.isneginf(log_mass[:, ~EXISTS]))
        assert np.all(mean[:, ~EXISTS] == 0)


def test_all_derivative_modes_agree(key):
    """Gradient, jvp, and the three mixed second derivatives: of Dense, of Blockwise, of finite differences."""
    mask, signs = MASKS["causal padding"]
    at, along = problem(key, signs), problem(jr.key(1), "positive")
    results = {name: jax.jit(_derivatives(loss(backend, mask)))(at, along) for name, backend in BACKENDS.items()}
    gradient, jvp, forward_reverse, reverse_reverse, forward_forward = results["dense"]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12), *results.values())

    f = _numpy_loss(mask)
    line = [f(*(np.asarray(a) + s * np.asarray(b) for a, b in zip(at, along, strict=True))) for s in (-1e-4, 0, 1e-4)]
    np.testing.assert_allclose(jvp, (line[2] - line[0]) / 2e-4, rtol=1e-5)
    np.testing.assert_allclose(forward_forward, (line[2] - 2 * line[1] + line[0]) / 1e-8, rtol=1e-4)
    np.testing.assert_allclose(_dot(gradient, along), jvp, rtol=1e-12)
    np.testing.assert_allclose(_dot(forward_reverse, along), forward_forward, rtol=1e-11)
    np.testing.assert_allclose(_dot(reverse_reverse, along), forward_forward, rtol=1e-11)


def _dot(a, b):
    return sum(jnp.vdot(x, y) for x, y in zip(a, b, strict=True))


def _derivatives(f):
    gradient = jax.grad(f, (0, 1, 2, 3))

    def at(at, along):
        def slope(*at):
            return jax.jvp(f, at, along)[1]

        reverse_reverse = jax.grad(lambda *at: _dot(gradient(*at), along), (0, 1, 2, 3))(*at)
        return (
            gradient(*at),
            slope(*at),
            jax.jvp(gradient, at, along)[1],
            reverse_reverse,
            jax.jvp(slope, at, along)[1],
        )

    return at


def _numpy_loss(mask):
    def f(*arrays):
        log_mass, mean = oracle(*arrays, mask)
        return np.sum(np.sin(log_mass[np.isfinite(log_mass)])) + np.sum(np.cos(mean))

    return f


@both
def test_zero_padding_and_blind_queries_have_zero_derivatives(backend, key):
    """A token of zeros that does not exist sees nobody and is seen by nobody: exact zeros, never NaN."""
    exists = jnp.asarray(EXISTS)
    x = jnp.where(exists[:, None], jr.normal(key, (N, D)), 0)

    def f(x, B):
        log_mass, mean = backend(jnp.einsum("hij,nj->hni", B, x), Measure(x), x, Padding(exists))
        return jnp.sum(mean**2) + jnp.sum(jnp.where(exists[None], log_mass, 0))

    gradient = jax.jit(jax.grad(f, (0, 1)))(x, jr.normal(jr.key(1), (H, D, D)))
    assert all(np.all(np.isfinite(g)) for g in gradient)
    assert np.all(gradient[0][~EXISTS] == 0)
    assert np.all(gradient[0][EXISTS] != 0)


@both
def test_huge_scores_give_the_hardmax(backend, dtype, key):
    """Distinct unit tokens attend to themselves alone, with the scale inside the compiled function."""
    x = jr.normal(key, (N, D), dtype)
    x = x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def attend(beta, x):
        queries = (beta * (x * 0.3))[None]
        return (*backend(queries, Measure(x), x), backend.peak(queries, Measure(x), x)[1])

    def with_gradient(beta, x):
        return attend(beta, x), jax.grad(lambda x: jnp.sum(attend(beta, x)[1]))(x)

    compiled = jax.jit(with_gradient)
    for beta in jnp.asarray([1e9, 1e12, 1e30], dtype):
        (log_mass, mean, peak), gradient = compiled(beta, x)
        np.testing.assert_array_equal(mean, x[None])
        np.testing.assert_array_equal(peak, x[None])
        np.testing.assert_allclose(log_mass, np.broadcast_to(0.3 * beta, (1, N)), rtol=1e-5)
        assert np.all(np.isfinite(gradient))
    if dtype == "float32":  # op by op as well: compiled code may fuse what must stay apart
        np.testing.assert_array_equal(attend(beta, x)[1], x[None])


@both
def test_scores_of_every_size(backend, dtype, key):
    """Small scores are shifted by their bound and large ones by their maximum; neither shows in the result."""
    queries, points, values, _ = problem(key, dtype=dtype)
    run = jax.jit(lambda q, y, v: backend(q, Measure(y), v))
    opposite = (-jnp.abs(queries), jnp.abs(points))  # every score is far below its bound
    for scale in (0.0, 0.1, 3.0, 30.0, 1e3):
        for q, y in ((scale * queries, points), (scale * opposite[0], opposite[1])):
            log_mass, mean = run(q, y, values)
            expected = oracle(*(np.asarray(a, float) for a in (q, y, values)), None, None)
            tolerance = (1e-4 if dtype == "float32" else 1e-12) * max(1, scale)
            np.testing.assert_allclose(log_mass, expected[0], rtol=0, atol=tolerance)
            np.testing.assert_allclose(mean, expected[1], rtol=0, atol=tolerance)


@both
def test_far_points_in_single_precision(backend):
    """Every point opposite to the query: a mass of e^{-2·29} of the shift, whose square is no float32."""
    angle = jnp.linspace(-0.3, 0.3, N)
    points = -jnp.stack([jnp.cos(angle), jnp.sin(angle), 0 * angle], axis=1)
    query = jnp.broadcast_to(jnp.array([29.0, 0, 0]), (H, N, D))

    def f(query, points):
        log_mass, mean = backend(query, Measure(points), points)
        return jnp.sum(log_mass) + jnp.sum(mean)

    hessian = jax.jit(lambda q, y: jax.jvp(jax.grad(f, (0, 1)), (q, y), (q, y))[1])
    double = hessian(query, points)
    single = hessian(query.astype("float32"), points.astype("float32"))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3), single, double)


@both
def test_negative_mass(backend):
    """A measure of negative mass has no log mass, but its mean is the quotient all the same."""
    points, weights = jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([1.0, -3.0])
    log_mass, mean = jax.jit(lambda w: backend(jnp.zeros((1, 2, 2)), Measure(points, w), points))(weights)
    assert np.all(np.isnan(log_mass))
    np.testing.assert_allclose(mean, [[[-0.5, 1.5]] * 2], rtol=1e-15)


@both
def test_peak_shares_ties_and_ignores_absent_points(backend):
    """Points 0 and 1 tie; point 2 scores higher but does not exist; point 3 scores higher with weight 0."""
    points = jnp.array([[1.0, 0.0], [1.0, 1.0], [5.0, 0.0], [4.0, 0.0], [0.5, 0.0]])
    exists, weights = jnp.array([True, True, False, True, True]), jnp.array([1.0, 3.0, 1.0, 0.0, 1.0])
    query = jnp.broadcast_to(jnp.array([2.0, 0.0]), (1, 3, 2))

    def peak(query, points, values):
        return backend.peak(query, Measure(points, weights, exists), values)

    largest, mean = jax.jit(peak)(query, points, points)
    np.testing.assert_array_equal(largest, np.full((1, 3), 2.0))
    np.testing.assert_array_equal(mean, np.broadcast_to([1.0, 0.75], (1, 3, 2)))
    share = np.array([0.25, 0.75, 0, 0, 0])

    by_query, by_point, by_value = jax.jit(jax.jacrev(peak, (0, 1, 2)))(query, points, points)[1]
    assert not np.any(by_query)
    assert not np.any(by_point)
    np.testing.assert_array_equal(by_value[0, 1, :, :, :], np.eye(2)[:, None, :] * share[None, :, None])
    slope = jax.jit(jax.jacfwd(peak))(query, points, points)[0]
    np.testing.assert_array_equal(slope[0, 0, 0, 0], [1.0, 0.75])


@both
def test_permuted_tokens_give_permuted_results(backend, key):
    queries, points, values, weights = problem(key, "positive")
    order = jr.permutation(key, N)
    run = jax.jit(lambda q, y, w, v: backend(q, Measure(y, w), v))
    log_mass, mean = run(queries, points, weights, values)
    permuted = run(queries[:, order], points[order], weights[order], values[order])
    np.testing.assert_allclose(permuted[0], log_mass[:, order], rtol=1e-14)
    np.testing.assert_allclose(permuted[1], mean[:, order], rtol=1e-12, atol=1e-15)


@both
def test_dtype_is_that_of_the_queries(backend, key):
    """Under x64 neither double points nor Python numbers promote single queries; nothing comes back weak."""
    queries, points, values, _ = problem(key, dtype="float32")

    def run(queries, points, values, weights):
        measure = Measure(points, weights)
        return (*backend(queries, measure, values), *backend.peak(queries, measure, values))

    double = (points.astype("float64"), values.astype("float64"))
    for arguments in ((points, values, None), (*double, jnp.ones(N, "float64"))):
        for result in jax.eval_shape(run, queries, *arguments):
            assert result.dtype == jnp.float32
            assert not result.weak_type


@both
def test_log_mass_alone(backend, key):
    queries, points, values, _ = problem(key)
    log_mass, mean = jax.jit(lambda q, y: backend(q, Measure(y), jnp.zeros((N, 0))))(queries, points)
    expected, _ = oracle(*map(np.asarray, (queries, points, values)), None, None)
    np.testing.assert_allclose(log_mass, expected, rtol=1e-13, atol=1e-14)
    assert mean.shape == (H, N, 0)


def test_many_values_and_any_block(key):
    """More values than the thin product takes, and blocks that divide, exceed or split the queries."""
    queries, points, _, _ = problem(key)
    values = jr.normal(jr.key(1), (N, 12))
    expected = oracle(*map(np.asarray, (queries, points, values)), None, None)
    for backend in (Dense(), Blockwise(block=1), Blockwise(block=7), Blockwise(block=100)):
        results = jax.jit(lambda q, y, v, b=backend: b(q, Measure(y), v))(queries, points, values)
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)
    with pytest.raises(ValueError, match="block must be at least 1; got 0"):
        Blockwise(block=0)


@both
def test_an_ensemble_is_its_members(backend, key):
    """vmap takes both shifts at once and must keep the right one: member 0 is small, member 1 huge."""
    queries, points, values, _ = problem(key)
    scaled = jnp.stack([queries, 1e4 * queries])
    together = jax.jit(jax.vmap(lambda q: backend(q, Measure(points), values)))(scaled)
    for i in range(2):
        alone = oracle(*map(np.asarray, (scaled[i], points, values)), None, None)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, rtol=1e-10), together, alone)


def test_gradient_memory_has_no_n_squared():
    """n = 4096, h = 8: all scores are 512 MB; a block of them and its neighbours are less than 40."""
    n, h = 4096, 8
    x, B = jax.ShapeDtypeStruct((n, D), jnp.float32), jax.ShapeDtypeStruct((h, D, D), jnp.float32)

    def f(x, B):
        log_mass, mean = Blockwise(block=256)(jnp.einsum("hij,nj->hni", B, x), Measure(x), x)
        return jnp.sum(log_mass) + jnp.sum(mean**2)

    memory = jax.jit(jax.grad(f, (0, 1))).lower(x, B).compile().memory_analysis()
    assert 0 < memory.temp_size_in_bytes < 40e6


def test_two_dense_calls_share_their_exponentials():
    """The same queries and points with other values cost one pass of exponentials."""
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((H, 64, D), (64, D), (64, 12))]

    def f(queries, points, values):
        first = Dense()(queries, Measure(points), points)
        return first, Dense()(queries, Measure(points), values)

    text = jax.jit(f).lower(*shapes).compile().as_text()
    assert text.count("round-nearest-even(") == 1


def test_choice_by_size_and_platform():
    assert isinstance(choose_backend(n=200, h=10, d=3, platform="cpu"), Dense)
    assert isinstance(choose_backend(n=1024, h=8, d=3, platform="cpu"), Blockwise)
    assert isinstance(choose_backend(n=1024, h=8, d=3, platform="gpu"), Dense)
    here, there = (choose_backend(n=2**16, h=8, d=3, platform=p) for p in ("cpu", "gpu"))
    assert isinstance(here, Blockwise)
    assert isinstance(there, Blockwise)
    assert here.block * 2**16 * 4 <= 2**25 < there.block * 2**16 * 4
    assert type(choose_backend(n=200, h=10, d=3)) is Dense
