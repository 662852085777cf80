"""Spaces in which tokens live."""

from ._manifold import AbstractManifold as AbstractManifold
from .euclidean import Euclidean as Euclidean
from .sphere import Sphere as Sphere
