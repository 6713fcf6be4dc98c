"""The lock of a folder: one process writes, any number reads."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from visionshare.errors import StoreError

LOCK = "writer.lock"

_logger = logging.getLogger(__name__)
# A file system, such as an NFS mount without a lock service, may know no locks.
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


@contextmanager
def writer_lock(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Keep other writers out of a folder."""
    # The system frees the lock of a process that ends, however it ends: the file that stays
    # behind locks nothing. Where the file system knows no locks a warning is logged, and it is
    # for the user to keep to one writer.
    from filelock import FileLock, Timeout

    lock = FileLock(folder / name, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise StoreError(f"{folder}: another process writes; try again later") from None
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
            raise StoreError(f"{folder}: cannot be written to ({error.strerror})") from None
        _logger.warning("no file locks here: keep to one writer of %s", folder)
    try:
        yield
    finally:
        lock.release()
