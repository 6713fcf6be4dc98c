"""Labeled pictures that are decoded only when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from visionshare.datasets.opening import open_picture

__all__ = ["TEST", "TRAIN", "VALIDATION", "Content", "Header", "PictureSet", "header"]

# What a picture is for, as its source says.
TRAIN, TEST, VALIDATION = 0, 1, 2
# Encoded pictures that wait for a thread, at most.
_BATCH, _BATCH_BYTES = 64, 32 << 20
Data: TypeAlias = "str | bytes | np.ndarray"


class Content(NamedTuple):
    """A picture: what messages call it, and its path, its file's bytes or its pixels."""

    name: str
    data: Data


class Header(NamedTuple):
    """What the first bytes of a picture tell: its height, width, mode and format."""

    height: int
    width: int
    mode: str
    format: str


@dataclass(frozen=True)
class PictureSet:
    """Pictures, the class of each, and what each is for."""

    name: str
    classes: tuple[str, ...]
    labels: np.ndarray
    roles: np.ndarray | None
    contents: Callable[[], Iterator[Content]]
    notes: tuple[str, ...] = ()
    kind: str = "files"
    values: tuple[float, float] | None = None
    blocks: tuple[tuple[str, np.ndarray], ...] = ()

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
                numbers, waiting, n_bytes = [], [], 0
        if waiting:
            yield numbers, waiting


def header(content: Content) -> Header:
    """Return what a picture's header tells; no pixel is decoded."""
    name, data = content
    if isinstance(data, np.ndarray):
        # A vector is a row of values.
        height, width = data.shape[:2] if data.ndim > 1 else (1, len(data))
        channels = data.shape[2] if data.ndim > 2 else 1
        mode = {1: "L", 3: "RGB", 4: "RGBA"}.get(channels, f"{channels} channels")
        mode = mode if data.dtype == np.uint8 else f"{mode} {data.dtype}"
        return Header(int(height), int(width), mode, "array")
    picture = open_picture(data, name=name)
    return Header(*picture.shape, picture.mode, picture.format)
