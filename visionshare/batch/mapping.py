"""Where the work of an app is done: a function of many items, here or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

# Calls a function with an object that it makes where it runs, and with each of many items; gives
# the results in order. map_here is one, visionshare.distributed.mapping.ClusterMap another.
Mapper: TypeAlias = Callable[
    [Callable[..., Any], Callable[..., Any], tuple[Any, ...], Iterable[Any]], Iterator[Any]
]


def map_here(
    function: Callable[..., Any],
    make: Callable[..., Any],
    arguments: tuple[Any, ...],
    items: Iterable[Any],
) -> Iterator[Any]:
    """Yield ``function(make(*arguments), item)`` for each item."""
    made = make(*arguments)
    return (function(made, item) for item in items)


def itself(value: Any) -> Any:
    """Return the value: what workers make of an object that is sent to them."""
    return value
