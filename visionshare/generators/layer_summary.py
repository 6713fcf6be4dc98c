"""What each layer of a classifier gives, holds and costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

__all__ = ["LayerSummary", "n_floats"]


@dataclass(frozen=True)
class LayerSummary:
    """One line of the table of layers.

    Attributes
    ----------
    name : str
        The family's name; "scores" for the weights of classes.
    shape : tuple of int
        Shape of what the layer gives for one image.
    templates : int or None
        Number of templates, where the layer has any.
    parameters : int
        Learned numbers.
    macs : int
        Multiply-accumulates per image.

    Examples
    --------
    >>> LayerSummary("maps", (12, 12, 4), 4, 104, 57_600).parameters
    104
    """

    name: str
    shape: tuple[int, ...]
    templates: int | None
    parameters: int
    macs: int


def n_floats(arrays: Iterable[np.ndarray]) -> int:
    """Return how many numbers arrays hold that are no whole numbers: these are learned.

    Examples
    --------
    >>> n_floats([np.zeros((2, 3), np.float32), np.arange(5)])
    6
    """
    return sum(int(array.size) for array in arrays if array.dtype.kind == "f")
