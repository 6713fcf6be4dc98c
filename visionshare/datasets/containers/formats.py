"""The formats that are read: how a file is known for one, and what reads its structure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from visionshare.datasets.containers.boxes import read_avif, read_heif
from visionshare.datasets.containers.container import Container
from visionshare.datasets.containers.gif import read_gif
from visionshare.datasets.containers.jpeg import read_jpeg
from visionshare.datasets.containers.jpeg2000 import read_jpeg2000
from visionshare.datasets.containers.png import read_png
from visionshare.datasets.containers.pnm import read_pnm
from visionshare.datasets.containers.tiff import read_tiff
from visionshare.datasets.containers.webp import read_webp

_AVIF_BRANDS = {b"avif", b"avis"}
_HEIC_BRANDS = {b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"}
# Bytes of a bitmap in runs: Pillow unpacks them in Python.
_MAX_RUNS = 512 << 10


@dataclass(frozen=True)
class Format:
    """A format of pictures; files of boxes have a brand in place of a beginning."""

    name: str
    extensions: tuple[str, ...]
    beginnings: tuple[bytes, ...]
    read: Callable[[bytes], Container]
    max_pixels: int | None = None
    needs: str = ""


def _read_bmp(data: bytes) -> Container:
    is_in_runs = data[30:31] in (b"\x01", b"\x02")
    if is_in_runs and len(data) > _MAX_RUNS:
        raise ValueError(f"runs of more than {_MAX_RUNS} bytes")
    return Container("BMP", data)


_JPEG2000 = Format(
    "JPEG 2000", (".jp2", ".j2k", ".j2c", ".jpx", ".jpf"),
    (b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  "), read_jpeg2000, 1 << 24,
    "a Pillow that was built with OpenJPEG",
)  # fmt: skip
_AVIF = Format("AVIF", (".avif", ".avifs"), (), read_avif, 1 << 25, "Pillow 11.3 or newer")
_HEIC = Format(
    "HEIC", (".heic", ".heif", ".hif", ".heics"), (), read_heif, 1 << 25,
    'pillow-heif: pip install "visionshare[heic]"',
)  # fmt: skip
_ALL = (
    Format("PNG", (".png", ".apng"), (b"\x89PNG\r\n\x1a\n",), read_png),
    Format("JPEG", (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"), (b"\xff\xd8\xff",), read_jpeg),
    Format("BMP", (".bmp",), (b"BM",), _read_bmp),
    Format("GIF", (".gif",), (b"GIF87a", b"GIF89a"), read_gif),
    Format(
        "TIFF", (".tif", ".tiff"),
        (b"II*\0", b"MM\0*", b"II\0*", b"MM*\0", b"II+\0", b"MM\0+"), read_tiff,
    ),
    Format("WebP", (".webp",), (b"RIFF",), read_webp, 1 << 25),
    Format(
        "PPM", (".pgm", ".ppm", ".pbm", ".pnm", ".pfm"),
        (b"P1", b"P2", b"P3", b"P4", b"P5", b"P6", b"Pf"), read_pnm,
    ),
    _JPEG2000, _AVIF, _HEIC,
)  # fmt: skip


@cache
def readable_formats() -> tuple[Format, ...]:
    """Return the formats that this installation reads."""
    from PIL import features

    known = (*features.get_supported_modules(), *features.get_supported_codecs())
    missing = []
    if "avif" not in known:
        missing.append(_AVIF)
    if "jpg_2000" not in known:
        missing.append(_JPEG2000)
    try:
        from pillow_heif import register_heif_opener

        register_heif_opener()
    except ImportError:
        missing.append(_HEIC)
    return tuple(format_ for format_ in _ALL if format_ not in missing)


@cache
def extensions() -> frozenset[str]:
    """Return the endings of the names of files that this installation reads."""
    return frozenset(end for format_ in readable_formats() for end in format_.extensions)


def format_of(data: bytes) -> Format | None:
    """Return the format of a file, which its first bytes tell; None for an unknown one."""
    if data[4:8] == b"ftyp":
        # The major brand, its version, and further brands.
        length = min(int.from_bytes(data[:4], "big"), 256)
        brands = {data[i : i + 4] for i in (8, *range(16, length - 3, 4))}
        if brands & _AVIF_BRANDS:
            return _AVIF
        return _HEIC if brands & _HEIC_BRANDS else None
    if data.startswith(b"RIFF") and data[8:12] != b"WEBP":
        return None
    return next((format_ for format_ in _ALL if data.startswith(format_.beginnings)), None)
