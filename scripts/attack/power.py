"""A disk that loses its power: what was not flushed is gone, contents and names apart.

A child that runs a command records each ``fsync``: the contents of a file, or the names in a
folder, as they were then. Afterwards the folder is made again from these records alone.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["lose_power", "record_flushes", "remember"]


def remember(folder: Path, memory: Path) -> None:
    """Begin: all that is in a folder has been flushed. The memory is made empty first."""
    shutil.rmtree(memory, ignore_errors=True)
    for name in ("contents", "names", "kept"):
        (memory / name).mkdir(parents=True)
    for path in (folder, *sorted(folder.rglob("*"))):
        if not path.is_symlink():
            _record(path, memory)


def record_flushes(memory: Path) -> None:
    """Let every flush of this process be recorded; for a process that runs one command."""
    real = os.fsync

    def fsync(fd: Any) -> None:
        number = fd if isinstance(fd, int) else fd.fileno()
        real(number)
        _record(Path(os.readlink(f"/proc/self/fd/{number}")), memory)

    os.fsync = fsync


def lose_power(folder: Path, memory: Path, *, names_survive: bool) -> None:
    """Leave in a folder what was flushed.

    Parameters
    ----------
    folder, memory : Path
        As given to :func:`remember`.
    names_survive : bool
        Whether the names are those of the last moment, as file systems often have it, while the
        contents are those that were flushed; else the names are those that were flushed, too.
    """
    made = folder.with_name(f"{folder.name}.after")
    shutil.rmtree(made, ignore_errors=True)
    _make(folder.stat().st_ino, folder if names_survive else None, made, memory)
    shutil.rmtree(folder)
    made.rename(folder)


def _record(path: Path, memory: Path) -> None:
    number = str(path.stat().st_ino)
    if path.is_dir():
        entries = [_entry(Path(path, name)) for name in sorted(os.listdir(path))]
        (memory / "names" / number).write_text(json.dumps(entries))
        return
    shutil.copy2(path, memory / "contents" / number)
    # A file that has another name is not removed, so that no other gets its number.
    with suppress(FileExistsError):
        os.link(path, memory / "kept" / number)


def _entry(path: Path) -> list[Any]:
    """Return name, number, whether it is a folder, and where a link leads to."""
    link = os.readlink(path) if path.is_symlink() else ""
    return [path.name, path.lstat().st_ino, path.is_dir() and not link, link]


def _make(number: int, live: Path | None, target: Path, memory: Path) -> None:
    """Make a folder of what was recorded; with its live one, of the names that this has."""
    target.mkdir()
    names = memory / "names" / str(number)
    if live is not None:
        entries = [_entry(live / name) for name in os.listdir(live)]
    else:
        entries = json.loads(names.read_text()) if names.exists() else []
    for name, inode, is_folder, link in entries:
        contents = memory / "contents" / str(inode)
        if link:
            (target / name).symlink_to(link)
        elif is_folder:
            _make(inode, live and live / name, target / name, memory)
        elif contents.exists():
            shutil.copy2(contents, target / name)
        else:
            (target / name).touch()
