"""Files on this machine or in object storage: one way to name, list and open them."""

from __future__ import annotations

import glob
import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from visionshare.errors import DataError, InputError, StorageError, VisionshareError

# Storage that fails is asked again after so many seconds, then the error is the user's.
_PAUSES = (0.5, 2.0, 8.0)
# Bytes that are fetched together: pictures of a tar are read one after the other.
_BLOCK = 8 << 20
# Bytes that are taken out of these at once.
_BUFFER = 1 << 18
# What will be the same when it is asked for again.
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
# Storage in which an object appears when it is whole: others show files that grow.
_OBJECT_STORAGE = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az")


def is_url(name: str) -> bool:
    """Return whether a name says where a file is in storage, such as "s3://bucket/a.tar"."""
    return "://" in name


def matching_files(pattern: str) -> list[str]:
    """Return the files that a pattern stands for, sorted; of a URL, as URLs."""
    if not is_url(pattern):
        return sorted(glob.glob(pattern, recursive=True))
    if not glob.has_magic(pattern):
        return [pattern]
    files, path = _filesystem(pattern)
    found = _retried(pattern, lambda: files.glob(path))
    return sorted(str(files.unstrip_protocol(name)) for name in found)


def file_size(name: str) -> int:
    """Return the bytes of a file."""
    if not is_url(name):
        return int(_retried(name, lambda: os.stat(name).st_size))
    files, path = _filesystem(name)
    return int(_retried(name, lambda: files.size(path)) or 0)


@contextmanager
def open_file(name: str | os.PathLike[str], block: int = _BLOCK) -> Iterator[IO[bytes]]:
    """Open a file to read; of a URL, blocks are fetched as they are read."""
    text = os.fspath(name)
    if not is_url(text):
        with _retried(text, lambda: open(text, "rb")) as file:
            yield file
        return
    files, path = _filesystem(text)
    # Small reads, such as headers of a tar, are served from a buffer without Python's calls.
    with (
        _retried(text, lambda: files.open(path, "rb", block_size=block)) as remote,
        io.BufferedReader(RetriedFile(remote, text), _BUFFER) as file,
    ):
        yield file


def check_takes_results(url: str, argument: str = "out") -> None:
    """Check that a place in storage can take results: atomically, in a bucket that is there."""
    protocol, _, path = url.partition("://")
    names = path.strip("/").split("/")
    if protocol not in _OBJECT_STORAGE or len(names) < 2 or not all(names) or ".." in names:
        accepted = "a path, or a place in a bucket: s3://BUCKET/NAME, gs://… or abfs://…"
        raise InputError(argument, url, accepted)
    files, _ = _filesystem(url, argument)
    if not _written(url, lambda: files.exists(names[0])):
        raise InputError(argument, url, f"a bucket that is there (no {names[0]!r})")


def put_file(path: str | os.PathLike[str], url: str) -> None:
    """Write a file to object storage, where it appears when it is whole."""
    files, place = _filesystem(url)
    _written(url, lambda: files.put_file(os.fspath(path), place))


def object_names(url: str) -> list[str]:
    """Return the names of what lies in a place of storage, sorted; none where nothing does."""
    files, place = _filesystem(url)

    def listed() -> list[str]:
        # Others write there too.
        files.invalidate_cache()
        try:
            return [str(name) for name in files.ls(place, detail=False)]
        except FileNotFoundError:
            return []

    found = (name.rstrip("/").rpartition("/")[2] for name in _written(url, listed))
    return sorted(name for name in found if name)


def read_object(url: str) -> bytes | None:
    """Return the bytes of a small object of storage; None where there is none."""
    files, place = _filesystem(url)

    def read() -> bytes | None:
        files.invalidate_cache()
        try:
            return bytes(files.cat_file(place))
        except FileNotFoundError:
            return None

    return _written(url, read)


def remove_object(url: str) -> None:
    """Remove an object of storage, if it is there."""
    files, place = _filesystem(url)

    def removed() -> None:
        with suppress(FileNotFoundError):
            files.rm_file(place)

    _written(url, removed)


class RetriedFile(io.RawIOBase):
    """A file of storage, opened to read; reads are repeated where the storage fails."""

    def __init__(self, file: Any, name: str) -> None:
        super().__init__()
        self._file = file
        self._name = name

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes; return how many there were."""
        start = self._file.tell()

        def once() -> bytes:
            self._file.seek(start)
            return bytes(self._file.read(len(buffer)))

        found = bytes(_retried(self._name, once))
        buffer[: len(found)] = found
        return len(found)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place and return it."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Return the place of the next byte."""
        return int(self._file.tell())


def _filesystem(url: str, argument: str = "file") -> tuple[Any, str]:
    """Return the file system of a URL, as fsspec and its configuration have it, and the path."""
    accepted = 'what fsspec opens: `pip install "visionshare[storage]"` for s3:// and https://'
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise InputError(argument, url, accepted) from None
    try:
        files, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise InputError(argument, url, f"{accepted} ({error})") from None
    return files, str(path)


def _written(url: str, action: Any) -> Any:
    """Return what an action gives that writes, or that sees what others wrote."""
    return _retried(url, action, StorageError, "written")


def _retried(
    name: str, action: Any, kind: type[VisionshareError] = DataError, done: str = "read"
) -> Any:
    """Return what an action gives, tried again where it fails for the moment."""
    for pause in (*_PAUSES, None):
        try:
            return action()
        except _FINAL as error:
            raise kind(f"{name}: {error.strerror or 'no such file'}") from None
        except (OSError, TimeoutError) as error:
            if pause is None or not is_url(name):
                raise kind(f"{name}: cannot be {done} ({_line(error)})") from None
        except Exception as error:
            # Packages for storage have errors of their own, of which fsspec knows no list.
            if pause is None:
                raise kind(f"{name}: storage does not answer ({_line(error)})") from None
        time.sleep(pause)
    raise AssertionError("unreachable")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
