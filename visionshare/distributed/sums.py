"""Sums over partitions in an order that depends on the partitions alone.

Partitions are the leaves of a binary tree: of each level neighbors are joined in pairs, and one
that has no neighbor goes up alone. A node is (level, index). Whoever has both halves of a node may
join them: the bits of the root are the same wherever that happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Node = tuple[int, int]


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(_sum(x, y) for x, y in zip(a, b, strict=True))
    return a + b


def _largest(a: Any, b: Any) -> Any:
    import numpy as np

    return np.maximum(a, b)


JOINS: dict[str, Callable[[Any, Any], Any]] = {"sum": _sum, "max": _largest}


def joined(nodes: dict[Node, Any], n: int, join: Callable[[Any, Any], Any]) -> dict[Node, Any]:
    """Return what is left of a tree of n leaves when all nodes with both halves are joined.

    Examples
    --------
    >>> joined({(0, 0): 1, (0, 1): 2, (0, 3): 8, (0, 4): 16}, 5, lambda a, b: a + b)
    {(1, 0): 3, (0, 3): 8, (2, 1): 16}
    """
    nodes = dict(nodes)
    level = 0
    width = n
    while width > 1:
        for index in range(0, width, 2):
            left = (level, index)
            right = (level, index + 1)
            if index + 1 == width and left in nodes:
                nodes[level + 1, index // 2] = nodes.pop(left)
            elif left in nodes and right in nodes:
                nodes[level + 1, index // 2] = join(nodes.pop(left), nodes.pop(right))
        level += 1
        width = (width + 1) // 2
    order = sorted(nodes, key=lambda node: node[1] << node[0])
    return {node: nodes[node] for node in order}


def root(nodes: dict[Node, Any], n: int, join: Callable[[Any, Any], Any]) -> Any:
    """Return the value of all partitions."""
    (value,) = joined(nodes, n, join).values()
    return value


def tree_sum(values: Sequence[Any]) -> Any:
    """Return the sum of all partitions' values.

    Examples
    --------
    >>> tree_sum([1, 2, 4])
    7
    """
    nodes = {(0, i): value for i, value in enumerate(values)}
    return root(nodes, len(values), _sum)
