"""The functions that the fixtures ``paired`` and ``noted`` give to a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Noted", "Paired"]


class Paired(Protocol):
    """Times ``ours`` and ``plain`` in turn; notes the ratio of their medians."""

    def __call__(
        self,
        ours: Callable[[], Any],
        plain: Callable[[], Any],
        rounds: int = 9,
    ) -> None: ...


class Noted(Protocol):
    """Notes a figure that has no plain form."""

    def __call__(self, text: str) -> None: ...
