"""Members spread over devices have the noise and the result of one device. Four virtual ones, in their own process."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jax, jax.numpy as jnp, jax.random as jr, numpy as np
from jax.sharding import AxisType, PartitionSpec as P
import transformer_flows as tfl

class Weights(tfl.AbstractObservable):
    def __call__(self, t, x, flow):
        return flow.heads(t, x).score

sphere = tfl.Sphere(3)
x0 = sphere.uniform(jr.key(9), 6)
start = tfl.Heads.tied(tfl.random_symmetric(jr.key(1), h=2, d=3), sign=-1)
flow = tfl.AttentionFlow(sphere, tfl.OrnsteinUhlenbeck(start=start, mean=jnp.eye(3), rate=1.0, noise=1.4))
keys = jr.split(jr.key(0), 4)

def run(keys):
    sol = tfl.solve_ensemble(flow, x0, np.linspace(0, 1, 9), keys, observe={"D": Weights()})
    return sol.observed["D"], sol.states

D, states = run(keys)
assert len(jax.devices()) == 4
for devices in (1, 2, 4):
    mesh = jax.make_mesh((devices,), ("e",), devices=jax.devices()[:devices], axis_types=(AxisType.Auto,))
    shared = jax.shard_map(run, mesh=mesh, in_specs=P("e"), out_specs=P("e"), check_vma=False)
    own, there = jax.jit(shared)(keys)
    assert len(own.sharding.device_set) == devices
    np.testing.assert_array_equal(own, D)
    np.testing.assert_allclose(there, states, atol=1e-5)
"""


@pytest.mark.slow
def test_noise_is_bitwise_the_same_on_any_number_of_devices():
    """Fault 29: one seed on 1, 2 and 4 devices."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
