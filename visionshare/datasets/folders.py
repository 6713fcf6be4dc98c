"""Folders of images: a class per folder, any size and mode."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import TypeAlias

import numpy as np

from visionshare.datasets.containers.formats import extensions
from visionshare.datasets.decoding import decode_image
from visionshare.datasets.notices import note_kind
from visionshare.datasets.opening import MAX_PIXELS, Source, open_picture
from visionshare.datasets.pictures.value_ranges import SetRange
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.errors import DataError, InputError
from visionshare.machine.memory import check_fits, memory_room
from visionshare.machine.progress import track
from visionshare.machine.resources import resolve_jobs

_WAYS_OUT = "a smaller size, fewer images, or gray ones"
Fit: TypeAlias = "str | Preprocessing"
NAMED_FITS = ("resize", "center")
# What systems leave in folders, beside all whose names begin with a dot.
_LEFT_BEHIND = ("__MACOSX",)
# Of a picture that is decoded: Pillow's pixels and the array, which become Pillow's to resize it.
_BYTES_PER_PIXEL = 8


def read_image(
    source: Source,
    size: tuple[int, int] | None = None,
    mode: str = "gray",
    fit: Fit = "resize",
    max_pixels: int = MAX_PIXELS,
    background: int | None = None,
) -> np.ndarray:
    """Read one image; its EXIF orientation is respected."""
    steps = as_preprocessing(fit)
    return steps.apply(decode_image(source, mode, steps, background, max_pixels), size)


def as_preprocessing(fit: Fit) -> Preprocessing:
    """Return the steps that a name stands for, or those given."""
    if isinstance(fit, Preprocessing):
        return fit
    if fit not in NAMED_FITS:
        raise InputError("fit", fit, "'resize', 'center' or a Preprocessing")
    return Preprocessing(fit=fit)


def find_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the image files below a folder, sorted by path."""
    return [Path(path) for path in iter_images(folder)]


def iter_images(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the image files below a folder, sorted by path, a folder's entries at a time."""
    # Folders that are links are skipped: they may form cycles. So is what :func:`is_left_behind`.
    # A stack, not a recursion: folders may be nested deeper than Python's calls.
    waiting = [_entries(folder)]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
        elif entry.is_dir(follow_symlinks=False):
            waiting.append(_entries(entry.path))
        elif not os.path.isfile(entry.path):
            # Of a link to itself the entry's own is_file raises.
            continue
        elif is_picture_name(entry.name):
            yield entry.path
        else:
            note_kind(entry.path)


def is_picture_name(name: str) -> bool:
    """Return whether a file is named as pictures are that this installation reads."""
    return os.path.splitext(name)[1].lower() in extensions()


def _entries(folder: str | os.PathLike[str]) -> Iterator[os.DirEntry[str]]:
    """Return the entries of a folder, sorted by name, without what systems left behind."""
    try:
        with os.scandir(folder) as unsorted:
            kept = [entry for entry in unsorted if not is_left_behind(entry.name)]
    except OSError as error:
        raise DataError(f"{os.fspath(folder)}: cannot be read ({error.strerror})") from None
    return iter(sorted(kept, key=lambda entry: entry.name))


def leads_up(folder: Path) -> bool:
    """Return whether a folder is a link to itself or to a folder around it: a cycle."""
    if not folder.is_symlink():
        return False
    try:
        target = folder.resolve()
        home = folder.parent.resolve()
    except (OSError, RuntimeError):
        # Some versions of Python raise at a link to itself.
        return True
    return target == home or target in home.parents


def is_left_behind(name: str) -> bool:
    """Return whether a file or folder is hidden, or one that systems leave beside pictures."""
    return name.startswith(".") or name in _LEFT_BEHIND


def read_images(
    paths: Sequence[str | os.PathLike[str]],
    size: tuple[int, int],
    mode: str = "gray",
    fit: Fit = "resize",
    n_jobs: int = 1,
    broken: list[str] | None = None,
    draft: bool = False,
) -> np.ndarray:
    """Read images of one size, (n, height, width) or (n, height, width, 3), uint8."""
    # A draft is faster and about the same: JPEGs are decoded at a half to an eighth of their size.
    from concurrent.futures import ThreadPoolExecutor

    shape = (len(paths), *size, 3) if mode == "color" else (len(paths), *size)
    check_fits("images", float(np.prod(shape)), _WAYS_OUT)
    images = np.empty(shape, np.uint8)
    whole = np.ones(len(paths), bool)
    steps = as_preprocessing(fit)
    values = SetRange.of_files(paths)
    room = _Room(memory_room() // 2 // _BYTES_PER_PIXEL)

    def one(number: int) -> DataError | None:
        try:
            picture = open_picture(paths[number])
            if draft:
                picture.reduce(size, mode)
            width, height = picture.image.size
            with room.taken(width * height):
                own_steps = values.steps_for(picture, steps)
                pixels = decode_image(picture, mode, own_steps)
                picture.free()
                images[number] = own_steps.apply(pixels, size)
        except DataError as error:
            return error
        return None

    with ThreadPoolExecutor(resolve_jobs(n_jobs)) as threads:
        results = threads.map(one, range(len(paths)))
        for number, error in enumerate(track(results, "reading", len(paths))):
            whole[number] = error is None
            if error is not None and broken is None:
                threads.shutdown(cancel_futures=True)
                raise error
            if error is not None and broken is not None:
                broken.append(str(paths[number]))
    return images if whole.all() else images[whole]


class _Room:
    """Room for so many pixels that threads decode at a time; a larger picture has all of it."""

    def __init__(self, pixels: int) -> None:
        self._pixels = pixels
        self._free = pixels
        self._changed = Condition()

    @contextmanager
    def taken(self, pixels: int) -> Iterator[None]:
        """Wait until there is room for a picture, which is inside until the block ends."""
        pixels = min(pixels, self._pixels)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= pixels)
            self._free -= pixels
        try:
            yield
        finally:
            with self._changed:
                self._free += pixels
                self._changed.notify_all()


def file_text(name: str) -> str:
    """Return a file's name as text, the same in every locale; bytes that are no UTF-8 escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
