"""The bound of a run's memory, checked before each stage; freed memory goes back to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from visionshare.errors import MemoryLimitError
from visionshare.machine.resources import available_memory, parse_size, size_text

#: Bounds below this count as this much where a stage is refused: what small runs need anyway.
LEAST = 256 << 20
# From malloc.h, and the size from which a block is one of its own. Pillow's have 16 MiB.
_M_MMAP_THRESHOLD = -3
_LARGE = 8 << 20


@dataclass
class MemoryBound:
    """A number of bytes, and what is held of them by name."""

    limit: int
    option: str = "memory"
    held: dict[str, int] = field(default_factory=dict)

    @property
    def room(self) -> int:
        """Bytes that are not held."""
        return max(self.limit, LEAST) - sum(self.held.values())

    def check(self, stage: str, needed: float, ways_out: str) -> None:
        """Check that a stage has room for what it is about to need."""
        if needed <= self.room:
            return
        beside = ", ".join(f"{size_text(size)} of {name}" for name, size in self.held.items())
        raise MemoryLimitError(
            f"{stage}: about {size_text(needed)}{f' beside {beside}' if beside else ''}; "
            f"{self.option} allows {size_text(self.limit)}: {ways_out}, or more memory"
        )


_in_force: ContextVar[MemoryBound | None] = ContextVar("visionshare_memory", default=None)


def _bound() -> MemoryBound:
    return _in_force.get() or MemoryBound(available_memory(), "this machine")


@contextmanager
def memory_limit(limit: str | int, option: str = "memory") -> Iterator[MemoryBound]:
    """Have the stages inside of a block keep to a bound of memory."""
    bound = MemoryBound(min(parse_size(limit, option), available_memory()), option)
    token = _in_force.set(bound)
    try:
        yield bound
    finally:
        _in_force.reset(token)


def memory_room() -> int:
    """Return the bytes that the bound in force leaves; without a bound, this machine's memory."""
    return _bound().room


def check_fits(stage: str, needed: float, ways_out: str) -> None:
    """Check what a stage is about to need against the bound in force."""
    _bound().check(stage, needed, ways_out)


def hold(name: str, n_bytes: int) -> None:
    """Note what is held until the bound in force ends; 0 for what was freed."""
    bound = _in_force.get()
    if bound is not None:
        bound.held.pop(name, None)
        if n_bytes:
            bound.held[name] = n_bytes


@cache
def _function(name: str, *arguments: Any) -> Callable[..., int] | None:
    """Return a function of the C library, or None where it has none of the name."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes = arguments
    function.restype = ctypes.c_int
    return lambda *values: int(function(*values))


def release_large_blocks() -> None:
    """Let blocks of at least 8 MiB be the system's again as soon as they are freed (glibc)."""
    # Otherwise glibc keeps blocks of up to 32 MiB after the first was freed, and must set them to
    # zero before they are used again: 30 ms for a picture of 2²⁵ pixels, in which no other thread
    # runs Python.
    mallopt = _function("mallopt", ctypes.c_int, ctypes.c_int)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)


def trim_memory() -> None:
    """Give freed memory back to the system, where the C library keeps it (glibc)."""
    trim = _function("malloc_trim", ctypes.c_size_t)
    if trim is not None:
        trim(0)
