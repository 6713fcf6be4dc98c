"""Labeled pictures that are decoded only when they are asked for: what every reader returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from visionshare.answers import Answers
from visionshare.datasets.readers.labels import TEST, VALIDATION

# Encoded pictures that wait for a thread, at most.
_BATCH = 64
_BATCH_BYTES = 32 << 20
Data: TypeAlias = "str | bytes | np.ndarray"


class Content(NamedTuple):
    """A picture: what messages call it, and its path, its file's bytes or its pixels."""

    name: str
    data: Data


@dataclass(frozen=True)
class PictureSet:
    """Pictures, the class of each, and what each is for."""

    name: str
    classes: tuple[str, ...]
    labels: np.ndarray
    roles: np.ndarray | None
    # Yields all pictures in order.
    contents: Callable[[], Iterator[Content]]
    notes: tuple[str, ...] = ()
    # "files", "arrays" of pictures, or "prepared" arrays, of which nothing is changed.
    kind: str = "files"
    # What became 0 and 255 where arrays of numbers became bytes.
    values: tuple[float, float] | None = None
    # The arrays that hold the pictures, and their names.
    blocks: tuple[tuple[str, np.ndarray], ...] = ()
    # What they show, where that is no class.
    answers: Answers | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def has_test(self) -> bool:
        """Whether the source names pictures for testing."""
        return self.roles is not None and bool((self.roles == TEST).any())

    @property
    def n_validation(self) -> int:
        """How many pictures the source names for validation."""
        return 0 if self.roles is None else int((self.roles == VALIDATION).sum())

    def batches(
        self, chosen: np.ndarray | None = None
    ) -> Iterator[tuple[list[int], list[Content]]]:
        """Yield the numbers and contents of some pictures at a time, bounded in memory."""
        numbers: list[int] = []
        waiting: list[Content] = []
        n_bytes = 0
        for number, content in enumerate(self.contents()):
            if chosen is not None and not chosen[number]:
                continue
            numbers.append(number)
            waiting.append(content)
            n_bytes += len(content.data) if isinstance(content.data, bytes) else 0
            if len(waiting) == _BATCH or n_bytes >= _BATCH_BYTES:
                yield numbers, waiting
                numbers = []
                waiting = []
                n_bytes = 0
        if waiting:
            yield numbers, waiting
