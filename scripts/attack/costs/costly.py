"""What a format's expensive inputs are, and how its files are read."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Makes an input of about so many bytes.
Builder = Callable[[int, np.random.Generator], bytes]


@dataclass(frozen=True)
class Costly:
    """A format.

    Attributes
    ----------
    builders : mapping of str to callable
        Inputs by what makes them expensive.
    seeds : callable
        Returns valid inputs, which are damaged.
    use : callable
        Reads an input as the library would, and returns how many encoded pictures it read, or
        KiB of packed text; raises what the library raises.
    """

    builders: Mapping[str, Builder]
    seeds: Callable[[], list[bytes]]
    use: Callable[[bytes], int]


def written(content: bytes, suffix: str) -> Path:
    """Return a file of the campaign's own folder; the next of this name replaces it."""
    path = Path(tempfile.gettempdir()) / f"costly{suffix}"
    path.write_bytes(content)
    return path


def loaded(suffix: str) -> Callable[[bytes], int]:
    """Return what reads a data set whose file has this suffix."""

    def use(content: bytes) -> int:
        from visionshare.datasets import load_images

        load_images(written(content, suffix))
        return 0

    return use


def repeated(part: bytes, size: int) -> bytes:
    """Return a part as often as it fits into a size."""
    return part * max(1, size // len(part))
