"""What turns a classifier into a faster one; found among installed packages by its name."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np

from visionshare.errors import ExportError

__all__ = ["GROUP", "Compiled", "find_compiler"]

GROUP = "visionshare.compilers"


class Compiled(Protocol):
    """What a compiler returns: an estimator that predicts as its classifier does."""

    classes_: np.ndarray
    image_shape: tuple[int, ...]

    def decision_function(self, images: np.ndarray) -> np.ndarray:
        """Return scores (n, k), float32."""
        ...

    def predict(self, images: np.ndarray) -> np.ndarray:
        """Return the class of each image."""
        ...

    def predict_proba(self, images: np.ndarray) -> np.ndarray:
        """Return probabilities (n, k)."""
        ...


def find_compiler(target: str) -> Callable[..., Compiled]:
    """Return the compiler that an installed package offers under a name.

    Parameters
    ----------
    target : str
        Name of an entry point of the group ``visionshare.compilers``; ``"c"`` is the library's
        own.

    Raises
    ------
    ExportError
        If no installed package offers it.

    Examples
    --------
    >>> find_compiler("c").__name__
    'compile_classifier'
    """
    offered = entry_points(group=GROUP)
    found: Any = next((one for one in offered if one.name == target), None)
    if found is None:
        names = ", ".join(sorted({one.name for one in offered}))
        known = f"known: {names}" if names else "none is installed: run `pip install .`"
        raise ExportError(f"no compiler {target!r}; {known}")
    compiler: Callable[..., Compiled] = found.load()
    return compiler
