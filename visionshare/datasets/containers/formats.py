"""The formats that are read: how a file is known for one, and what reads its structure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from visionshare.datasets.containers.boxes import read_avif, read_heif, read_jpeg2000
from visionshare.datasets.containers.container import Container
from visionshare.datasets.containers.gif import read_gif
from visionshare.datasets.containers.jpeg import read_jpeg
from visionshare.datasets.containers.png import read_png
from visionshare.datasets.containers.pnm import read_pnm
from visionshare.datasets.containers.tiff import read_tiff
from visionshare.datasets.containers.webp import read_webp

__all__ = ["Format", "extensions", "format_of", "readable_formats"]

_TIFF_BEGINS = (b"II*\0", b"MM\0*", b"II\0*", b"MM*\0", b"II+\0", b"MM\0+")
_PNM_BEGINS = (b"P1", b"P2", b"P3", b"P4", b"P5", b"P6", b"Pf")
_JPEG2000_BEGINS = (b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  ")
# Bytes of a bitmap in runs: Pillow unpacks them in Python.
_MOST_RUNS = 512 << 10


@dataclass(frozen=True)
class Format:
    """A format of pictures."""

    name: str
    extensions: tuple[str, ...]
    read: Callable[[bytes, bool], Container]
    max_pixels: int | None = None
    needs: str = ""


def _read_bmp(data: bytes, all_pages: bool = False) -> Container:
    in_runs = data[30:31] in (b"\x01", b"\x02")
    if in_runs and len(data) > _MOST_RUNS:
        raise ValueError(f"runs of more than {_MOST_RUNS} bytes")
    return Container("BMP", data)


_PNG = Format("PNG", (".png", ".apng"), read_png)
_JPEG = Format("JPEG", (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"), read_jpeg)
_BMP = Format("BMP", (".bmp",), _read_bmp)
_GIF = Format("GIF", (".gif",), read_gif)
_TIFF = Format("TIFF", (".tif", ".tiff"), read_tiff)
_WEBP = Format("WebP", (".webp",), read_webp, 1 << 25)
_PNM = Format("PPM", (".pgm", ".ppm", ".pbm", ".pnm", ".pfm"), read_pnm)
_JPEG2000 = Format(
    "JPEG 2000", (".jp2", ".j2k", ".j2c", ".jpx", ".jpf"), read_jpeg2000, 1 << 24,
    "a Pillow that was built with OpenJPEG",
)  # fmt: skip
_AVIF = Format("AVIF", (".avif", ".avifs"), read_avif, 1 << 25, "Pillow 11.3 or newer")
_HEIC = Format(
    "HEIC", (".heic", ".heif", ".hif", ".heics"), read_heif, 1 << 25,
    'pillow-heif: pip install "visionshare[heic]"',
)  # fmt: skip
_ALL = (_PNG, _JPEG, _BMP, _GIF, _TIFF, _WEBP, _PNM, _JPEG2000, _AVIF, _HEIC)


@cache
def readable_formats() -> tuple[Format, ...]:
    """Return the formats that this installation reads."""
    missing = set()
    if not _has("avif"):
        missing.add(_AVIF)
    if not _has("jpg_2000"):
        missing.add(_JPEG2000)
    try:
        from pillow_heif import register_heif_opener

        register_heif_opener()
    except ImportError:
        missing.add(_HEIC)
    return tuple(format_ for format_ in _ALL if format_ not in missing)


def _has(feature: str) -> bool:
    from PIL import features

    known = feature in (*features.get_supported_modules(), *features.get_supported_codecs())
    return known


@cache
def extensions() -> frozenset[str]:
    """Return the endings of the names of files that this installation reads."""
    return frozenset(end for format_ in readable_formats() for end in format_.extensions)


def format_of(data: bytes) -> Format | None:
    """Return the format of a file, which its first bytes tell; None for an unknown one."""
    first = data[:4]
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _PNG
    if first[:3] == b"\xff\xd8\xff":
        return _JPEG
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return _GIF
    if first in _TIFF_BEGINS:
        return _TIFF
    if first == b"RIFF" and data[8:12] == b"WEBP":
        return _WEBP
    if first[:2] in _PNM_BEGINS:
        return _PNM
    if data.startswith(_JPEG2000_BEGINS):
        return _JPEG2000
    if first[:2] == b"BM":
        return _BMP
    return _of_brands(data)


def _of_brands(data: bytes) -> Format | None:
    """Return the format of a file of boxes, which names the kinds that it is."""
    if data[4:8] != b"ftyp":
        return None
    length = min(int.from_bytes(data[:4], "big"), 256)
    # The major brand, its version, and further brands.
    brands = {data[i : i + 4] for i in (8, *range(16, length - 3, 4))}
    if brands & {b"avif", b"avis"}:
        return _AVIF
    if brands & {b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"}:
        return _HEIC
    return None
