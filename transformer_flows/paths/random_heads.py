"""Heads drawn from a law."""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import ArrayLike

from .._checks import refuse_other_keys, refuse_other_type
from .._types import HeadMatrices, Key, Scalar, TimesLike
from ..models import Heads
from ._noise import parameter
from ._path import AbstractProcess
from .constant import Constant


class RandomHeads(AbstractProcess):
    """Heads with independent normal entries around those of `mean`, of variance `score` and `value`.

    As the weights of a flow they are drawn once, from the key of `realise` or of a member, and do not move. A `Network`
    draws them afresh for every layer. Raises `ValueError` for a mean of another type, and variances that are negative
    or not finite. Source: arXiv:2604.01978, random heads.
    """

    mean: Heads
    score: Scalar
    value: Scalar

    def __init__(self, mean: Heads, *, score: ArrayLike = 0.0, value: ArrayLike = 0.0):
        refuse_other_type(mean, "mean", Heads, "heads such as Heads(score, value)")
        self.mean = mean
        self.score = parameter(score, "score")
        self.value = parameter(value, "value")

    def draw(self, key: Key) -> Heads:
        """The heads of a key. Raises `ValueError` for what is not one key."""
        refuse_other_keys(key, "key", many=False)
        of_score, of_value = jr.split(key)
        score = self.mean.score + _normal(of_score, self.score, self.mean.score)
        return Heads(score, self.mean.value + _normal(of_value, self.value, self.mean.value))

    def sample(self, key: Key, ts: TimesLike) -> Constant:
        return Constant(self.draw(key))


def _normal(key: Key, variance: Scalar, like: HeadMatrices) -> HeadMatrices:
    return jnp.sqrt(variance).astype(like.dtype) * jr.normal(key, like.shape, like.dtype)
