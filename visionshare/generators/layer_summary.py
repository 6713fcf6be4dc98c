"""What each layer of a classifier gives, holds and costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LayerSummary:
    """One line of the table of layers."""

    name: str
    shape: tuple[int, ...]
    templates: int | None
    parameters: int
    macs: int


def n_floats(arrays: Iterable[np.ndarray]) -> int:
    """Return how many numbers arrays hold that are no whole numbers: these are learned."""
    return sum(int(array.size) for array in arrays if array.dtype.kind == "f")
