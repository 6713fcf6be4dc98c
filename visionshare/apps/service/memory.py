"""Memory that large pictures needed, given back to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

__all__ = ["release_large_blocks", "trim_memory"]

# From malloc.h, and the size from which a block is one of its own. Pillow's have 16 MiB.
_M_MMAP_THRESHOLD = -3
_LARGE = 8 << 20


@cache
def _function(name: str, *arguments: type[ctypes._SimpleCData[int]]) -> Callable[..., int] | None:
    """Return a function of the C library, or None where it has none of the name."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes, function.restype = arguments, ctypes.c_int
    return lambda *values: int(function(*values))


def release_large_blocks() -> None:
    """Let blocks of at least 8 MiB be the system's again as soon as they are freed (glibc).

    Otherwise glibc keeps blocks of up to 32 MiB after the first was freed, and must set them to
    zero before they are used again: 30 ms for a picture of 2²⁵ pixels, in which no other thread
    runs Python.

    Examples
    --------
    >>> release_large_blocks()
    """
    mallopt = _function("mallopt", ctypes.c_int, ctypes.c_int)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)


def trim_memory() -> None:
    """Give freed memory back to the system, where the C library keeps it (glibc).

    Examples
    --------
    >>> trim_memory()
    """
    trim = _function("malloc_trim", ctypes.c_size_t)
    if trim is not None:
        trim(0)
