"""Memory that large pictures needed, given back to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

__all__ = ["trim_memory"]


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        function = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes, function.restype = [ctypes.c_size_t], ctypes.c_int
    return lambda pad: int(function(pad))


def trim_memory() -> None:
    """Give freed memory back to the system, where the C library keeps it (glibc).

    Examples
    --------
    >>> trim_memory()
    """
    trim = _trim()
    if trim is not None:
        trim(0)
