"""What operating systems do differently, in one place: everything else asks here.

Tests take away what Windows lacks and refuse what it refuses (``tests/machine``).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

# Windows refuses to replace or remove a file that anyone has open: a reader, or a virus scanner.
_HELD = {5, 32}
_WAITS = (0.01, 0.05, 0.2, 0.5)
# Errors of file systems that cannot flush a folder, such as network drives.
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF}


def sync_file(path: str | os.PathLike[str]) -> None:
    """Return when the contents of a file are on the disk."""
    # Windows flushes only what is open for writing.
    with open(path, "r+b") as handle:
        os.fsync(handle.fileno())


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Return when the names in a folder are on the disk, where the system can say so."""
    # Windows opens no folders: there the file system's own journal keeps names.
    try:
        handle = os.open(path, os.O_RDONLY)
    except (PermissionError, IsADirectoryError):
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)


def make_folders(path: str | os.PathLike[str]) -> None:
    """Make a folder and those above it where they are missing; return when they are on the disk."""
    folder = Path(path)
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in reversed(missing):
        sync_folder(one.parent)


def sync_tree(path: str | os.PathLike[str]) -> None:
    """Return when a folder and all below it is on the disk."""
    for folder, _, files in os.walk(path, topdown=False):
        for name in files:
            sync_file(Path(folder, name))
        sync_folder(folder)


def replace(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Give a file or folder another name, in one step."""
    # On Windows, wait for readers to close it.
    for seconds in _WAITS:
        try:
            os.replace(source, target)
        except PermissionError as error:
            # Only Windows sets this number.
            if getattr(error, "winerror", None) not in _HELD:
                raise
            time.sleep(seconds)
        else:
            return
    os.replace(source, target)


def is_running(process: int) -> bool:
    """Return whether a process of this number runs."""
    if sys.platform == "win32":
        # Signal 0 is Ctrl-C there. Where nothing can say it, what the process left is kept.
        psutil = _psutil()
        return psutil is None or process in psutil.pids()
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # It belongs to another user.
        pass
    return True


def open_files(wanted: int) -> int:
    """Let this process open a number of files and sockets, and return how many it may open."""
    # Windows has no such limit.
    try:
        import resource
    except ImportError:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= wanted:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):
        # macOS has a further limit.
        return soft
    return most


def physical_memory() -> int:
    """Return how many bytes of memory this machine has; no bound where nothing says it."""
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    psutil = _psutil()
    return sys.maxsize if psutil is None else int(psutil.virtual_memory().total)


def peak_memory() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    # 0 where nothing says it.
    try:
        import resource
    except ImportError:
        psutil = _psutil()
        if psutil is None:
            return 0
        used = psutil.Process().memory_info()
        # Windows alone keeps the largest.
        return int(getattr(used, "peak_wset", used.rss))
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        # The system's own count begins with the memory of the process that started this one.
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def _psutil() -> Any:
    """Return psutil, which every installation on Windows has; None where it cannot be imported."""
    try:
        import psutil
    except (ImportError, AttributeError):
        return None
    return psutil


def user_label() -> str:
    """Return what names of this user's temporary files end in."""
    # On Windows their folder is theirs.
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def belongs_to_others(status: os.stat_result) -> bool:
    """Return whether a file is another user's, or others may write to it."""
    # On Windows these bits say nothing: there the folders of a user have lists of who may.
    if not hasattr(os, "getuid"):
        return False
    return status.st_uid != os.getuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def shared_library() -> tuple[str, list[str]]:
    """Return the suffix of a shared library's name, and the compiler's options that make one."""
    if sys.platform == "win32":
        # All code can be moved there, and the mathematics is in the C library.
        return ".dll", ["-shared"]
    return ".so", ["-shared", "-fPIC", "-lm"]
