"""Equiangular tokens and the clustering diagram, on tiny sizes."""

import numpy as np
import pytest

from transformer_flows.experiments.clustering_diagram import ClusteringDiagram
from transformer_flows.experiments.equiangular import Equiangular, equiangular_tokens
from transformer_flows.experiments.runner import compute
from transformer_flows.experiments.spec import SpecError

from .named import unnamed


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.7])
def test_equiangular_tokens(rho):
    x = equiangular_tokens(4, rho)
    np.testing.assert_allclose(x @ x.T, (1 - rho) * np.eye(4) + rho, atol=1e-12)


def test_the_cosine_follows_the_law():
    data = compute(Equiangular(n=4, beta=[0.0, 2.0], start=-0.2, T=8.0, records=21))
    assert data["cosine"].dims == data["cosine_predicted"].dims == ("law", "beta", "t")
    assert data["hitting_time"].dims == data["hitting_time_predicted"].dims == ("law", "beta")
    assert unnamed(data) == []
    np.testing.assert_allclose(data["cosine"], data["cosine_predicted"], atol=1e-7)
    np.testing.assert_allclose(data["hitting_time"], data["hitting_time_predicted"], rtol=1e-5)
    # The laws agree at β = 0 and differ at β = 2: neither column is a copy of the other.
    assert abs(data["hitting_time"][0, 0] - data["hitting_time"][1, 0]) < 1e-6
    assert abs(data["hitting_time"][0, 1] - data["hitting_time"][1, 1]) > 0.1


@pytest.mark.parametrize(("values", "key"), [({"n": 4, "start": -0.34}, "start"), ({"start": 0.9999}, "level")])
def test_impossible_cosines_are_refused(values, key):
    with pytest.raises(SpecError, match=f"^{key}: got"):
        Equiangular(**values)


def test_the_clustering_diagram():
    data = compute(ClusteringDiagram(n=6, d=[6, 200], beta=[0.5, 1.0], T=8.0, records=17, draws=2, seed=1))
    assert data["clustered"].dims == ("d", "beta", "t")
    assert data["clustering_time_predicted"].dims == ("d", "beta")
    assert unnamed(data) == []
    clustered = data["clustered"].to_numpy()
    assert (clustered[..., 0] == 0).all() and (clustered[..., -1] == 1).all()
    assert (np.diff(clustered) >= 0).all()
    # In high dimension the tokens meet near the predicted time.
    late = data["t"].to_numpy()[(clustered[1] > 0.5).argmax(axis=-1)]
    np.testing.assert_allclose(late, data["clustering_time_predicted"][1], atol=1.0)


def test_coordinates_of_the_span_leave_the_motion_as_it_is():
    import jax.numpy as jnp

    from transformer_flows import AttentionFlow, Heads, Sphere, solve
    from transformer_flows.experiments.clustering_diagram import _start

    spec = ClusteringDiagram(n=6, d=[10])
    full = Sphere(10).uniform(*_key_and_size(spec))
    small = _start(spec, 10, 0)
    np.testing.assert_allclose(small @ small.T, full @ full.T, atol=1e-12)
    ts = jnp.linspace(0.0, 2.0, 17)
    states = [
        np.asarray(solve(AttentionFlow(Sphere(d), Heads.identity(d, beta=2.0)), x, ts).states)
        for d, x in ((10, full), (6, small))
    ]
    grams = [x @ np.swapaxes(x, 1, 2) for x in states]
    np.testing.assert_allclose(*grams, atol=1e-7)


def _key_and_size(spec):
    import jax.random as jr

    return jr.fold_in(jr.fold_in(jr.key(spec.seed), 10), 0), spec.n
