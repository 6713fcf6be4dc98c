"""Typed errors in place of those that checks of scikit-learn and Python raise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.errors import InputError, InputTypeError, VisionshareError

# Values that a message of scikit-learn repeats, and its advice to use other estimators.
_REPEATED = re.compile(r"\narray=.*?(?=\nReshape)|(?<=contains NaN\.)\n.*", re.DOTALL)


@contextmanager
def input_errors(argument: str, given: Any, accepted: str) -> Iterator[None]:
    """Make an InputError of a ValueError or TypeError that is raised in the block."""
    try:
        yield
    except VisionshareError:
        raise
    except (TypeError, ValueError) as error:
        problem = _REPEATED.sub("", str(error))
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(argument, _shown(given, problem), f"{accepted} ({problem})") from error


def checked_path(argument: str, given: Any) -> Path:
    """Return a path, once it is known to be a text or an object that stands for a path."""
    with input_errors(argument, given, "a path"):
        return Path(given)


def _shown(given: Any, problem: str) -> Any:
    """Return what a message repeats of an argument: the wrong value, the shape or the type."""
    if "contains NaN" in problem:
        return np.nan
    if "contains infinity" in problem:
        return np.inf
    if given is None or isinstance(given, (str, bool, int, float)):
        return given
    return getattr(given, "shape", None) or f"a {type(given).__name__}"
