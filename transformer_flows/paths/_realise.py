"""Finding paths and processes in any tree, and drawing every process before a solve."""

from typing import Any

import jax
import jax.random as jr

from .._checks import refuse_other_keys
from .._types import Key, TimesLike, Tree
from ._knots import knots
from ._path import AbstractPath, AbstractProcess


def find_paths(tree: Any) -> list[AbstractPath]:
    """Every path in `tree`, by type, in the order of its leaves; a path inside a path is part of it."""
    return _find(tree, AbstractPath)


def find_processes(tree: Any) -> list[AbstractProcess]:
    """Every process in `tree` that is not drawn yet, likewise."""
    return _find(tree, AbstractProcess)


def realise(tree: Tree, key: Key, ts: TimesLike) -> Tree:
    """`tree` with every process in it replaced by its path with knots `ts`.

    Process i, in the order of `find_processes`, is drawn from `key` folded with i. A process that occurs twice is
    drawn twice, independently: draw it first to share one path. Raises `ValueError` for what is not one key, and times
    that are negative, not finite or do not increase strictly.
    """
    refuse_other_keys(key, "key", many=False)
    ts = knots(ts, "ts")
    drawn = 0

    def draw(node: Any) -> Any:
        nonlocal drawn
        if not isinstance(node, AbstractProcess):
            return node
        path = node.sample(jr.fold_in(key, drawn), ts)
        drawn += 1
        return path

    return jax.tree.map(draw, tree, is_leaf=lambda node: isinstance(node, AbstractProcess))


def _find(tree: Any, kind: type) -> list[Any]:
    nodes = jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, kind))
    return [node for node in nodes if isinstance(node, kind)]
