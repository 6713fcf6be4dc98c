"""A picture's file, opened: its structure is read once, its pixels when they are asked for."""

from __future__ import annotations

import io
import os
import threading
import warnings
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from visionshare.datasets.broken_files import file_errors
from visionshare.datasets.containers.container import TURNED, Container, orientation_of
from visionshare.datasets.containers.formats import format_of, readable_formats
from visionshare.errors import DataError, InputError

if TYPE_CHECKING:
    from PIL import Image


#: Pixels of a picture that are decoded at most, unless a caller says otherwise.
MAX_PIXELS = 1 << 26
# Decoders take time and memory for each row, however short it is.
_MAX_SIDE = 1 << 17
_MAX_FILE = 1 << 30
# Bytes that are read at once.
_PART = 1 << 20
#: Formats whose integers of mode "I" have 16 bits.
DEEP = ("PNG", "PPM")
#: Formats that hold floats, or integers of 32 bits.
FREE = ("TIFF", "PPM")
Source: TypeAlias = "str | os.PathLike[str] | bytes | BinaryIO | OpenedPicture"


class OpenedPicture:
    """A picture whose structure was read, and no pixel."""

    def __init__(self, name: str, container: Container, max_pixels: int) -> None:
        self.name = name
        self.container = container
        self.max_pixels = max_pixels
        if container.size is not None:
            self._check_size(*container.size)

    @property
    def format(self) -> str:
        """Pillow's name of the format."""
        return self.container.format

    @property
    def n_pages(self) -> int:
        """Pages or frames of the file, of which one is used."""
        if self.container.size is not None:
            return self.container.n_pages
        return int(getattr(self.image, "n_frames", 1))

    @cached_property
    def image(self) -> Image.Image:
        """The picture as Pillow opens it: as stored, not turned upright."""
        from PIL import Image

        with self.errors():
            data = io.BytesIO(self.container.data)
            opened = Image.open(data, formats=(self.container.format,))
            self._check_size(*opened.size)
            return opened

    def free(self) -> None:
        """Free the decoded pixels; who asks for the image again has it decoded again."""
        self.__dict__.pop("image", None)

    @property
    def stored_size(self) -> tuple[int, int]:
        """Width and height, as stored."""
        return self.container.size or self.image.size

    @property
    def orientation(self) -> int:
        """How the stored picture lies, as EXIF counts; 1 is upright."""
        if self.container.size is not None:
            return self.container.orientation
        # Pillow says so what a file's own properties tell.
        return orientation_of(self.image.info.get("exif") or b"")

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width, upright."""
        width, height = self.stored_size
        return (width, height) if self.orientation in TURNED else (height, width)

    @property
    def mode(self) -> str:
        """Pillow's mode, and whether colors of it are transparent."""
        image = self.image
        return image.mode + (" with transparency" if "transparency" in image.info else "")

    @property
    def has_free_range(self) -> bool:
        """Whether values may go from any number to any other: integers of 32 bits, and floats."""
        if self.format not in FREE:
            return False
        mode = self.image.mode
        return mode == "F" or (mode == "I" and self.format not in DEEP)

    def reduce(self, size: tuple[int, int], mode: str) -> None:
        """Let a JPEG's decoder divide height and width by 2, 4 or 8, to twice a size or more."""
        height, width = self.shape
        # Where nothing is divided, the values stay as they are.
        if self.format == "JPEG" and height >= 4 * size[0] and width >= 4 * size[1]:
            rows, columns = (size[1], size[0]) if self.orientation in TURNED else size
            with self.errors():
                self.image.draft("L" if mode == "gray" else None, (2 * columns, 2 * rows))

    def errors(self) -> PictureErrors:
        """Make a DataError of what goes wrong inside of the block, and silence warnings."""
        return PictureErrors(self.name, "an image")

    def _check_size(self, width: int, height: int) -> None:
        if width * height > self.max_pixels:
            raise DataError(
                f"{self.name}: {width}×{height} pixels are too many: at most {self.max_pixels} "
                "are read; scale the picture down, or raise max_pixels"
            )
        if max(width, height) > _MAX_SIDE:
            raise DataError(
                f"{self.name}: {width}×{height} pixels: a side is too long: at most {_MAX_SIDE} "
                "are read; cut the picture, or scale it down"
            )


def open_picture(
    source: Source,
    max_pixels: int = MAX_PIXELS,
    name: str | None = None,
) -> OpenedPicture:
    """Return a picture whose structure was read; no pixel is decoded."""
    if isinstance(source, OpenedPicture):
        return source
    if name is None:
        name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else "image"
    with file_errors(name, "an image"):
        data = _bytes_of(source, name)
        found = format_of(data)
        readable = readable_formats()
        if found not in readable:
            accepted = ", ".join(format_.name for format_ in readable)
            why = f"unknown format; accepted: {accepted}"
            if found is not None:
                why = f"{found.name} needs {found.needs}"
            raise DataError(f"{name}: cannot be read as an image ({why})")
        most = max_pixels if found.max_pixels is None else min(max_pixels, found.max_pixels)
        return OpenedPicture(name, found.read(data), most)


def _bytes_of(source: str | os.PathLike[str] | bytes | BinaryIO, name: str) -> bytes:
    """Return the bytes of a file, from its beginning."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    elif isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            data = _read(file)
    elif not hasattr(source, "read") or isinstance(source, io.TextIOBase):
        accepted = "a path, bytes, or a file that is open for binary reading"
        raise InputError("source", type(source).__name__, accepted)
    else:
        # A file that cannot be wound back is read from where it is.
        with suppress(AttributeError, OSError):
            source.seek(0)
        data = _read(source)
    if len(data) > _MAX_FILE:
        raise DataError(f"{name}: larger than {_MAX_FILE} bytes")
    return data


def _read(file: BinaryIO) -> bytes:
    """Return what is left of a file, and not much more than is accepted."""
    # It comes in parts: one read of so many bytes would ask for their memory before it has them.
    data = bytearray()
    while len(data) <= _MAX_FILE and (part := file.read(_PART)):
        data += part
    return bytes(data)


class _Quiet:
    """Silences warnings while any thread decodes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._filters: warnings.catch_warnings[Any] | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._filters is not None:
                self._filters.__exit__(None, None, None)


#: A context; to enter it around many pictures makes it cheaper to enter it for each.
SILENCE = _Quiet()


class PictureErrors(file_errors):
    """Makes a DataError of what goes wrong while a picture is decoded; warnings are silent."""

    def __enter__(self) -> None:
        SILENCE.__enter__()

    def __exit__(self, *about: Any) -> None:
        SILENCE.__exit__(*about)
        super().__exit__(*about)
