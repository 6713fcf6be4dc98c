"""Files that are replaced atomically: complete or absent, whatever moment the process dies at."""

from __future__ import annotations

import errno
import glob
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from visionshare.errors import InputError, StorageError
from visionshare.machine.system import (
    is_running,
    make_folders,
    replace,
    sync_file,
    sync_folder,
    sync_tree,
)  # fmt: skip

# What the system says where a write cannot be done, whatever is written.
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_WRITES = {errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ENAMETOOLONG}
# And where the name is taken, or its folder takes none: of another file they say something else.
_NO_NAME = {errno.EISDIR, errno.EEXIST, errno.ENOENT, errno.ELOOP, errno.ENOTEMPTY}
_numbers = itertools.count()


@contextmanager
def storage_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the system's refusals to write into a :class:`StorageError` that names the path."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StorageError(f"{path}: {error.strerror}; free space and run it again") from error
        of_name = error.errno in _NO_NAME and _is_beside(error.filename, path)
        if error.errno in _NO_WRITES or of_name:
            raise StorageError(f"{path}: cannot be written ({error.strerror})") from error
        raise


def _is_beside(name: object, path: str | os.PathLike[str]) -> bool:
    """Return whether the file of an error is one that is written, under its last name or not."""
    if not isinstance(name, (str, os.PathLike)):
        return False
    return Path(path) in (Path(name), *Path(name).parents) or (
        is_partial(Path(name)) and Path(name).parent == Path(path).parent
    )


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder and those above it where they are missing; return its path."""
    folder = Path(path)
    # As a path a URL has lost one of its slashes; a drive has one letter.
    if re.match(r"[a-z0-9+]{2,}:/", folder.as_posix()):
        raise InputError("path", folder.as_posix().replace(":/", "://", 1), "a path, no URL")
    with storage_errors(folder):
        try:
            make_folders(folder)
        except FileNotFoundError as error:
            # File systems that no folder can be made in, such as that of processes, say this.
            raise StorageError(f"{folder}: cannot be made ({error.strerror})") from error
    return folder


def is_partial(path: Path) -> bool:
    """Return whether a file is what a killed process left of a write."""
    return path.name.startswith(".") and path.suffix == ".partial"


def _remove_stale(final: Path) -> None:
    """Remove partial files and folders that processes left when they were killed."""
    for partial in final.parent.glob(f".{glob.escape(final.name)}.*.partial"):
        process = partial.name.split(".")[-2].partition("-")[0]
        if process.isdigit() and not is_running(int(process)):
            if partial.is_dir() and not partial.is_symlink():
                shutil.rmtree(partial, ignore_errors=True)
            else:
                partial.unlink(missing_ok=True)


def move_into_place(written: Path, final: Path) -> None:
    """Give a file that is complete its name: after this neither is lost when the power is."""
    sync_file(written)
    replace(written, final)
    sync_folder(final.parent)


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; move it there, synced, when the block succeeds."""
    # A process that is killed leaves the temporary file behind: the next write of the same name
    # removes it.
    final = Path(path)
    make_folder(final.parent)
    partial = final.with_name(f".{final.name}.{os.getpid()}-{next(_numbers)}.partial")
    with storage_errors(final):
        _remove_stale(final)
        try:
            yield partial
            move_into_place(partial, final)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


@contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; it gets that name when the block succeeds."""
    # A process that is killed leaves the temporary folder behind: the next call for the same name
    # removes it.
    final = Path(path).absolute()
    if os.path.lexists(final):
        raise InputError("folder", str(path), "a name that nothing has yet")
    make_folder(final.parent)
    partial = final.with_name(f".{final.name}.{os.getpid()}-{next(_numbers)}.partial")
    with storage_errors(final):
        _remove_stale(final)
        partial.mkdir()
        try:
            yield partial
            sync_tree(partial)
            replace(partial, final)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        sync_folder(final.parent)


def remove_folder(path: str | os.PathLike[str]) -> None:
    """Remove a folder and all in it."""
    # The name goes first, so that no half of it keeps the name. A process that is killed leaves
    # the rest under a partial name: the next removal of the same folder removes that too.
    final = Path(path)
    if final.is_symlink():
        raise InputError("folder", str(path), "a folder, and no link to one")
    with storage_errors(final):
        _remove_stale(final)
        if not final.is_dir():
            return
        partial = final.with_name(f".{final.name}.{os.getpid()}-{next(_numbers)}.partial")
        replace(final, partial)
        shutil.rmtree(partial)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace ``path`` by a file of these bytes, atomically."""
    with replace_file(path) as partial:
        partial.write_bytes(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Replace ``path`` by a UTF-8 file of this text, atomically."""
    write_bytes(path, text.encode("utf-8"))
