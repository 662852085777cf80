"""Processes and paths are found by type in any tree, and every process is drawn with a key of its own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from transformer_flows.paths import (
    AbstractPath,
    Brownian,
    BrownianPath,
    Constant,
    Interpolated,
    OrnsteinUhlenbeck,
    OrnsteinUhlenbeckPath,
    find_paths,
    find_processes,
    realise,
)

TS = jnp.array([0.0, 0.5, 1.0])
KEY = jr.key(4)


class Holder(eqx.Module):
    weights: object
    scale: jax.Array
    noise: object


def test_every_process_is_replaced_by_its_path_and_nothing_else_is_touched():
    first, second = OrnsteinUhlenbeck(jnp.ones(2), 0.0, 1.0, 1.0), Brownian(jnp.zeros(2))
    still = Constant(jnp.zeros(2))
    flow = {"a": Holder(first, jnp.ones(3), [second, still, "name"]), "b": second}
    assert find_processes(flow) == [first, second, second] and find_paths(flow) == [still]
    drawn = realise(flow, KEY, TS)
    assert find_processes(drawn) == []
    paths = find_paths(drawn)
    assert [type(path) for path in paths] == [OrnsteinUhlenbeckPath, BrownianPath, Constant, BrownianPath]
    assert isinstance(drawn["a"], Holder) and drawn["a"].noise[2] == "name" and drawn["a"].scale is flow["a"].scale
    # Process i has the key folded with i; one process in two places is drawn twice.
    for i, (process, path) in enumerate(((first, paths[0]), (second, paths[1]), (second, paths[3]))):
        np.testing.assert_array_equal(path.values, process.sample(jr.fold_in(KEY, i), TS).values)
    assert (paths[1].values[1:] != paths[3].values[1:]).all()


def test_a_tree_without_processes_is_returned_as_it_is():
    path = Interpolated(TS, jnp.arange(3.0))
    assert realise(path, KEY, TS) is path or eqx.tree_equal(realise(path, KEY, TS), path)
    assert find_paths(path) == [path] and find_paths(None) == [] and isinstance(path, AbstractPath)


def test_realise_under_transformations_keeps_the_grid_known():
    """Fixed steps are counted on the grid, so the times must not become traced values on the way."""
    grids = []

    def sample(key):
        path = realise(Brownian(jnp.zeros(2)), key, TS)
        grids.append(path.grid)
        return path.values

    jax.eval_shape(jax.vmap(sample), jr.split(KEY, 2))
    assert len(grids) == 1 and not isinstance(grids[0], jax.core.Tracer)
