"""All scores at once: the simplest backend, and the fastest for a few hundred tokens."""

import functools

import jax
import jax.numpy as jnp

from ._backend import AbstractBackend
from ._charges import charges, radius, results, visible
from ._peak import peak
from ._tilt import shifted, weigh
from .exp2 import LOG2E


class Dense(AbstractBackend):
    """Tilted sums with every score in memory, h·r·m numbers. No loop, so that XLA can share work between two calls.

    Signed weights are allowed. A mass that they make negative has log mass NaN; the mean is right all the same.
    """

    def __call__(self, queries, measure, values, mask=None):
        h, r, d = queries.shape
        c = charges(measure, values, mask, queries.dtype)
        seen = visible(c.exists, mask, jnp.arange(h * r) % max(r, 1), c.points.shape[1])
        sums, shift = _sums(LOG2E * queries.reshape(h * r, d), c.points, c.charges, seen)
        return results(sums.reshape(h, r, -1), shift.reshape(h, r), c.log_count)

    def peak(self, queries, measure, values, mask=None):
        c = charges(measure, values, mask, queries.dtype)
        return peak(queries, c, visible(c.exists, mask, jnp.arange(queries.shape[1]), c.points.shape[1]))


# A reverse pass over many steps keeps n·d numbers of each instead of h·r·m. Without loops around it XLA finds that the
# recomputed scores are those it has.
@functools.partial(jax.checkpoint, prevent_cse=False)
def _sums(queries, points, charge, seen):
    tilt, shift = shifted(queries, points, seen, radius(points))
    return weigh(tilt, charge), shift
