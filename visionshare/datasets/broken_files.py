"""One error for what is wrong with a file, whatever the package that reads it raises."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from visionshare.errors import DataError, VisionshareError


@contextmanager
def file_errors(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Make a DataError of what goes wrong in the block."""
    # Packages raise anything for broken files.
    try:
        yield
    except (VisionshareError, MemoryError):
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        line = " ".join(reason.split())[:300]
        raise DataError(f"{path}: cannot be read as {kind} ({line})") from None
