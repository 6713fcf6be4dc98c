"""Compiled libraries, kept between runs in a folder that nobody else can write to."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from visionshare.errors import ExportError
from visionshare.export.c.program import CProgram, batch_source
from visionshare.export.toolchain import FLAGS, compiler, run_compiler, target_macros
from visionshare.machine.resources import cache_folder
from visionshare.machine.system import belongs_to_others, replace, shared_library, user_label


def cached_library(program: CProgram, cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """Return the shared library of a program, compiled unless the cache has it."""
    # Its name is the digest of the source, the compiler with its version and flags, and the
    # instructions of this processor: a home folder may be shared by several machines.
    name = program.name
    sources = {file: program.files[file] for file in (f"{name}.h", f"{name}.c")}
    # No program has a name with a capital letter.
    sources["Batch.c"] = batch_source(name)
    parts = [*sources.values(), *compiler(), *FLAGS, target_macros()]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    folder = library_folder(cache_dir)
    library = folder / f"{digest}{shared_library()[0]}"
    if library.is_file():
        return library
    try:
        with tempfile.TemporaryDirectory(dir=folder) as work:
            made = compiled_library(sources, Path(work), "Batch.c")
            # Two processes may compile the same at once: either file is complete.
            replace(made, library)
    except OSError as error:
        if library.is_file():
            # On Windows it is in use already.
            return library
        raise ExportError(f"{folder}: {error.strerror}; name another folder (cache_dir)") from None
    return library


def compiled_library(sources: Mapping[str, str], folder: Path, main: str) -> Path:
    """Write sources into a folder; return the shared library of the one that includes all."""
    for name, text in sources.items():
        (folder / name).write_text(text, encoding="ascii")
    suffix, options = shared_library()
    library = folder / f"library{suffix}"
    run_compiler([*FLAGS, folder / main, "-o", library, *options])
    return library


def library_folder(cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """Return a folder for libraries that nobody else can write to, made where it is missing."""
    if cache_dir is not None:
        return _usable(Path(cache_dir))
    try:
        return _made_for_one_user(cache_folder() / "compiled")
    except OSError:
        # Services and containers often run without a home that they can write to.
        return _usable(Path(tempfile.gettempdir()) / f"visionshare-{user_label()}")


def _usable(folder: Path) -> Path:
    try:
        return _made_for_one_user(folder)
    except OSError as error:
        raise ExportError(f"{folder}: {error.strerror}; name another folder") from None


def _made_for_one_user(folder: Path) -> Path:
    """Return a folder, made where it is missing; raise unless this user alone can write to it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or belongs_to_others(status):
        raise ExportError(f"{folder}: not a folder of this user alone; remove it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "cannot be written to", str(folder))
    return folder
