"""One row of the table: C, and the images that it is tested on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.export.targets import DeviceSources

__all__ = ["Contender"]


@dataclass(frozen=True)
class Contender:
    """A classifier in C.

    Parameters
    ----------
    name : str
        What the table calls it; classifiers of one name, such as those of several seeds, share a
        row.
    sources : DeviceSources
    macs : int or None
        Multiply-accumulates an image, where that is what it does.
    images : ndarray of shape (n, ...)
        Test images as it takes them.
    labels : ndarray of shape (n,)
        Indexes of their classes.
    seconds : float or None
        Of training.
    memory : int or None
        Bytes that training took at most.
    """

    name: str
    sources: DeviceSources
    macs: int | None
    images: np.ndarray
    labels: np.ndarray
    seconds: float | None = None
    memory: int | None = None
