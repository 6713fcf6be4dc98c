"""Files that commands write: never over what they read, nor over what others wrote."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from visionshare.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

_PROGRAM = "visionshare"
# How a PNG says it, near its beginning, and hOCR in its head.
_IN_PNG = b"Software\0visionshare"
_IN_HOCR = b'name="ocr-system" content="visionshare'
_HEAD = 2048


def check_not_inputs(
    argument: str, outputs: Iterable[Path], inputs: Iterable[str | os.PathLike[str]]
) -> None:
    """Check that no file that a command writes is one that it reads."""
    existing = [path for path in outputs if _identity(path) is not None]
    if not existing:
        return
    read = set(map(_identity, inputs))
    for path in existing:
        if _identity(path) in read:
            raise InputError(argument, f"{path}, which the command reads", "another place")


def _identity(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Return what is the same for all names of a file; None where there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def check_file(
    argument: str,
    path: Path,
    *begins: str,
    suffix: str | None = None,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Check that a file can be written, before there is anything to write."""
    if suffix is not None and path.suffix.lower() != suffix:
        raise InputError(argument, str(path), f"a file {suffix}")
    reason = os.strerror(errno.EISDIR) if path.is_dir() else None
    if reason is None:
        # Folders that are missing are made.
        folder = next((above for above in path.parents if os.path.lexists(above)), Path())
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            reason = error.strerror
    if reason is not None:
        raise InputError(argument, str(path), f"a file to write to ({reason})")
    check_not_inputs(argument, [path], inputs)
    head = _head(path)
    if begins and head and not head.startswith(tuple(text.encode() for text in begins)):
        given = f"{path}, which this command did not write"
        accepted = f"a new file, or one that begins with {begins[0].strip()}"
        raise InputError(argument, given, accepted)


def check_free(argument: str, path: Path, ours: bool) -> None:
    """Check that nothing has a name, or only what an earlier run of the command wrote."""
    if not ours and os.path.lexists(path):
        given = f"{path}, which this command did not write"
        raise InputError(argument, given, "a folder without files of these names")


def write_png(path: Path, picture: Image.Image) -> None:
    """Write a picture, which says what wrote it."""
    from PIL.PngImagePlugin import PngInfo

    from visionshare.files.durable import replace_file

    about = PngInfo()
    about.add_text("Software", _PROGRAM)
    with replace_file(path) as partial:
        picture.save(partial, format="png", pnginfo=about)


def is_our_png(path: Path) -> bool:
    """Return whether a file is one that :func:`write_png` wrote."""
    return _IN_PNG in _head(path)


def is_our_page(path: Path) -> bool:
    """Return whether a file is one of a page that `visionshare read` wrote, and nobody changed."""
    if path.suffix == ".png":
        return is_our_png(path)
    if path.suffix == ".hocr":
        return _IN_HOCR in _head(path)
    text = _text_of_page(path.with_suffix(".json"))
    if path.suffix == ".json" or text is None:
        return text is not None
    try:
        return path.read_text("utf-8").rstrip("\n") == text
    except (OSError, ValueError):
        return False


def _head(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def _text_of_page(path: Path) -> str | None:
    """Return the text of a page that was written as JSON; None of any other file."""
    try:
        page = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(page, dict) or not {"light_on_dark", "blocks", "text"} <= set(page):
        return None
    text = page["text"]
    return text if isinstance(text, str) else None
