"""Python as Windows has it, as far as another system can pretend; then a classifier's life.

``python tests/machine/windows.py FOLDER`` takes away what Windows lacks and refuses what it
refuses, imports every module of the package and works in the folder. See :func:`pretend`.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl
import importlib
import io
import os
import pkgutil
import re
import shutil
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Other packages have branches of their own for Windows: they are imported before the pretense.
_PACKAGES = (
    "asyncio", "blake3", "concurrent.futures.process", "ctypes.util", "cv2", "filelock",
    "fontTools.ttLib", "h5py", "jinja2", "joblib", "matplotlib.pyplot", "multiprocessing.pool",
    "numba", "onnx", "onnxruntime", "platformdirs", "pooch", "psutil", "pydantic",
    "safetensors.numpy", "scipy.optimize", "scipy.sparse.linalg", "skimage.feature",
    "sklearn.linear_model", "sklearn.model_selection", "subprocess", "tempfile", "tqdm.auto",
    "typer.testing",
)  # fmt: skip
_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
_FUNCTIONS = {
    "chown", "confstr", "fchmod", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups",
    "getloadavg", "getpgid", "getpgrp", "getpriority", "getuid", "killpg", "lchown", "mkfifo",
    "nice", "posix_fadvise", "posix_fallocate", "pread", "pwrite", "register_at_fork",
    "sched_getaffinity", "sched_setaffinity", "setpgid", "setsid", "sync", "sysconf",
    "uname", "wait", "O_DIRECTORY", "O_CLOEXEC", "O_NOFOLLOW", "O_SYNC",
}  # fmt: skip
_SIGNALS = {
    "SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGUSR1",
    "SIGUSR2", "alarm", "pthread_kill", "pthread_sigmask", "setitimer", "siginterrupt", "sigwait",
}  # fmt: skip
LACKING = _MODULES | {f"os.{name}" for name in _FUNCTIONS} | {f"signal.{name}" for name in _SIGNALS}
_RESERVED = re.compile(r'[<>:"|?*\x00-\x1f]|[ .]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)', re.I)


def pretend() -> None:
    """Make this process one of Windows for the package.

    Modules and functions that only POSIX systems have are gone; the handle of a folder, a flush of
    a handle that only reads, the signal 0, the removal or replacement of an open file, and names
    with colons are refused; text that is read or written without naming its encoding is an error.
    """
    for name in _PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in _FUNCTIONS & set(dir(os)):
        delattr(os, name)
    for name in _SIGNALS & set(dir(signal)):
        delattr(signal, name)
    # It would remove through handles of folders.
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    _hide_modules()
    _refuse_handles()
    _refuse_open_files()
    warnings.filterwarnings("error", category=EncodingWarning, module=r"visionshare\b")


def _hide_modules() -> None:
    real = builtins.__import__

    def imported(name: str, names: Any = None, *rest: Any, **options: Any) -> Any:
        if not (names or {}).get("__name__", "").startswith("visionshare"):
            return real(name, names, *rest, **options)
        if name in _MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return _Sys("sys") if name == "sys" else real(name, names, *rest, **options)

    builtins.__import__ = imported


class _Sys(types.ModuleType):
    """``sys`` of another platform: for the package alone, as others would load DLLs."""

    platform = "win32"

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(sys, name, value)


def _refuse_handles() -> None:
    """Refuse handles of folders, names with colons, and flushes of what is open for reading."""
    real_open, real_fsync, real_kill = os.open, os.fsync, os.kill

    def opened(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        _check_name(path)
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real_open(path, flags, *rest, **options)

    def fsync(handle: Any) -> None:
        number = handle if isinstance(handle, int) else handle.fileno()
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        real_fsync(number)

    def kill(process: int, number: int) -> None:
        if number not in (signal.SIGINT, signal.SIGTERM):
            raise SystemExit(f"os.kill(…, {number}) ends a process, or sends Ctrl-C to it")
        real_kill(process, number)

    os.open, os.fsync, os.kill = opened, fsync, kill


def _refuse_open_files() -> None:
    def refusing(real: Callable[..., Any], n_paths: int) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            # These have other ways on Windows.
            callers = traceback.extract_stack()
            if any("filelock" in f.filename or f.name == "TemporaryFile" for f in callers):
                return real(*arguments, **options)
            for path in arguments[:n_paths]:
                _check_name(path)
                _check_closed(path)
            return real(*arguments, **options)

        return called

    for name, n_paths in {"remove": 1, "unlink": 1, "rmdir": 1, "rename": 2, "replace": 2}.items():
        setattr(os, name, refusing(getattr(os, name), n_paths))
    real_open, real_mkdir = io.open, os.mkdir

    def opened(file: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(file, int):
            _check_name(file)
        return real_open(file, *arguments, **options)

    def mkdir(path: Any, *arguments: Any, **options: Any) -> None:
        _check_name(path)
        real_mkdir(path, *arguments, **options)

    builtins.open = io.open = opened
    os.mkdir = mkdir


def _check_name(path: Any) -> None:
    name = Path(os.fsdecode(path)).name
    if _RESERVED.search(name):
        raise OSError(errno.EINVAL, "Invalid argument", name)


def _check_closed(path: Any) -> None:
    """Raise where this process has a file open, or mapped, that it is about to rename or remove."""
    whole = os.path.realpath(path)
    opened = set()
    for handle in os.listdir("/proc/self/fd"):
        try:
            opened.add(os.readlink(f"/proc/self/fd/{handle}"))
        except OSError:
            continue
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        opened.update(line.rstrip("\n").split(maxsplit=5)[-1] for line in maps)
    if any(name == whole or name.startswith(f"{whole}/") for name in opened):
        error = PermissionError(errno.EACCES, "used by another process", str(path))
        error.winerror = 32  # type: ignore[attr-defined]
        raise error


def import_all() -> None:
    """Import every module of the package."""
    import visionshare

    for found in pkgutil.walk_packages(visionshare.__path__, "visionshare."):
        # A plugin is imported by the program that it is for.
        if not found.name.endswith(("__main__", "reading.ocrmypdf")):
            importlib.import_module(found.name)


def live(folder: Path) -> None:
    """Run each command that attacks are made on, twice, and use what it made."""
    import numpy as np

    import visionshare
    from scripts.attack.commands import COMMANDS, call, fresh
    from visionshare.files.durable import write_text

    # What a process left that was killed: no process has its number.
    (folder / ".note.4194400-0.partial").write_text("half", encoding="utf-8")
    write_text(folder / "note", "whole")
    assert [path.name for path in folder.iterdir()] == ["note"]
    for name, command in COMMANDS.items():
        target = fresh(command, folder, {}, name)
        for arguments in (command.argv(target), command.again(target)):
            assert call(arguments) == 0, arguments
        if name == "train":
            model = visionshare.load(target / "run" / "classifier.safetensors")
            images = np.zeros((2, *model.image_shape), np.uint8)
            before = model.predict_proba(images)
            model.save(target / "run" / "classifier.safetensors")
            after = visionshare.load(target / "run" / "classifier.safetensors")
            assert np.array_equal(before, after.predict_proba(images))


if __name__ == "__main__":
    pretend()
    import_all()
    live(Path(sys.argv[1]))
    sys.stdout.write("done\n")
