"""Atomic writes: a file is complete or absent, whenever the process is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replace_file", "write_bytes", "write_text"]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; move it there, synced, when the block succeeds.

    Parameters
    ----------
    path : path-like
        The final name. It appears only when the block ends without an exception.

    Yields
    ------
    pathlib.Path
        A name in the same folder, for the block to create and close.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replace_file(f"{folder}/a.txt") as partial:
    ...         _ = partial.write_text("1")
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.txt']
    """
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_name(f".{final.name}.{os.getpid()}.partial")
    try:
        yield partial
        with open(partial, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(partial, final)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(final.parent)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace ``path`` by a file of these bytes, atomically.

    Parameters
    ----------
    path : path-like
    content : bytes

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(f"{folder}/a", b"1")
    ...     Path(folder, "a").read_bytes()
    b'1'
    """
    with replace_file(path) as partial:
        partial.write_bytes(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Replace ``path`` by a UTF-8 file of this text, atomically.

    Parameters
    ----------
    path : path-like
    text : str

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(f"{folder}/a", "one")
    ...     Path(folder, "a").read_text()
    'one'
    """
    write_bytes(path, text.encode("utf-8"))
