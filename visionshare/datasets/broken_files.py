"""One error for what is wrong with a file, whatever the package that reads it raises."""

from __future__ import annotations

import os
from types import TracebackType

from visionshare.errors import DataError, VisionshareError


class file_errors:
    """A context that makes a DataError of what goes wrong inside; packages raise anything."""

    # A generator would take three times as long, for each picture of a large set.
    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self._path = path
        self._kind = kind

    def __enter__(self) -> None:
        return

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if isinstance(error, (VisionshareError, MemoryError)) or not isinstance(error, Exception):
            return
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        line = " ".join(reason.split())[:300]
        raise DataError(f"{self._path}: cannot be read as {self._kind} ({line})") from None
