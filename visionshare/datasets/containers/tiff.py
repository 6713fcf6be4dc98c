"""TIFF: one page's pixels and how they are stored, without all other entries and pages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from visionshare.datasets.containers.container import Container

__all__ = ["read_tiff"]

_MOST_PAGES, _MOST_ENTRIES, _MOST_PARTS = 10_000, 4096, 1 << 16
_ORIENTATION = 274
_WIDTH, _HEIGHT = 256, 257
_OFFSETS, _COUNTS = (273, 324), (279, 325)
# Size, bits, compression, colors, fill order, strips, samples, planes, fax options, predictor,
# color map, tiles, extra samples, sample format, JPEG tables, and YCbCr. All else says nothing
# of the values of pixels.
_KEPT = {
    254, 255, 256, 257, 258, 259, 262, 266, 273, 277, 278, 279, 284, 292, 293, 317, 320, 322,
    323, 324, 325, 332, 338, 339, 340, 341, 347, 512, 513, 514, 515, 517, 518, 519, 520, 521,
    529, 530, 531, 532,
}  # fmt: skip
_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
_WHOLE = (1, 3, 4, 16)


@dataclass(frozen=True)
class _Layout:
    """How numbers stand in a file: their order, and the bytes of a count and of an offset."""

    order: Literal["little", "big"]
    is_big: bool

    @property
    def offset(self) -> int:
        return 8 if self.is_big else 4

    @property
    def entries(self) -> int:
        return 8 if self.is_big else 2

    @property
    def entry(self) -> int:
        return 20 if self.is_big else 12


def read_tiff(data: bytes, all_pages: bool = False, page: int = 0) -> Container:
    """Return a TIFF of one page; its directory stands at the end and names only pixels."""
    layout = _Layout("little" if data[:2] == b"II" else "big", 0x2B in data[2:4])
    pages = _directories(data, layout)
    if page >= len(pages):
        raise ValueError(f"page {page + 1} of {len(pages)}")
    entries = _entries(data, layout, pages[page])
    width, height = (_first(data, layout, entries.get(tag)) for tag in (_WIDTH, _HEIGHT))
    orientation = _first(data, layout, entries.get(_ORIENTATION))
    kept = {tag: entry for tag, entry in sorted(entries.items()) if tag in _KEPT}
    _check_parts(data, layout, kept)
    directory = len(kept).to_bytes(layout.entries, layout.order) + b"".join(
        data[start : start + layout.entry] for start in kept.values()
    )
    directory += bytes(layout.offset)
    # Directories begin at an even byte.
    padding = bytes(len(data) % 2)
    first = len(data) + len(padding)
    at = layout.offset
    head = data[:at] + first.to_bytes(at, layout.order)
    file = b"".join((head, data[2 * at :], padding, directory))
    turn = orientation if 1 <= orientation <= 8 else 1
    other = partial(read_tiff, data, False) if all_pages else None
    return Container("TIFF", file, (width, height), turn, len(pages), other)


def _directories(data: bytes, layout: _Layout) -> list[int]:
    """Return where the directories of all pages begin."""
    found: dict[int, None] = {}
    at = _number(data, layout, layout.offset, layout.offset)
    # A directory that was there is the end: the chain is a circle.
    while at and at not in found:
        if at + layout.entries > len(data):
            if not found:
                raise ValueError("no directory")
            break
        if len(found) == _MOST_PAGES:
            raise ValueError(f"more than {_MOST_PAGES} pages")
        found[at] = None
        n = _number(data, layout, at, layout.entries)
        at = _number(data, layout, at + layout.entries + n * layout.entry, layout.offset)
    if not found:
        raise ValueError("no directory")
    return list(found)


def _entries(data: bytes, layout: _Layout, directory: int) -> dict[int, int]:
    """Return where each entry of a directory begins, by its tag."""
    n = _number(data, layout, directory, layout.entries)
    if n > _MOST_ENTRIES:
        raise ValueError(f"{n} entries in a directory")
    starts = (directory + layout.entries + i * layout.entry for i in range(n))
    return {_number(data, layout, start, 2): start for start in starts}


def _check_parts(data: bytes, layout: _Layout, entries: dict[int, int]) -> None:
    """Check that entries name no more bytes than there are: readers believe them."""
    named = 0
    for start in entries.values():
        kind, count = _number(data, layout, start + 2, 2), _count(data, layout, start)
        named += count * _BYTES.get(kind, 1)
    for tag in (*_OFFSETS, *_COUNTS):
        if tag in entries and _count(data, layout, entries[tag]) > _MOST_PARTS:
            raise ValueError(f"more than {_MOST_PARTS} strips or tiles")
    for tag in _COUNTS:
        if tag in entries:
            named += sum(_values(data, layout, entries[tag]))
    if named > 2 * len(data):
        raise ValueError(f"names {named} bytes and has {len(data)}")


def _count(data: bytes, layout: _Layout, start: int) -> int:
    return _number(data, layout, start + 4, layout.offset)


def _values(data: bytes, layout: _Layout, start: int) -> list[int]:
    """Return the whole numbers of an entry."""
    kind, count = _number(data, layout, start + 2, 2), _count(data, layout, start)
    if kind not in _WHOLE:
        return []
    size = _BYTES[kind]
    at = start + 4 + layout.offset
    if count * size > layout.offset:
        at = _number(data, layout, at, layout.offset)
    return [_number(data, layout, at + i * size, size) for i in range(count)]


def _first(data: bytes, layout: _Layout, start: int | None) -> int:
    """Return the first number of an entry, 0 where there is none."""
    if start is None or _count(data, layout, start) != 1:
        return 0
    values = _values(data, layout, start)
    return values[0] if values else 0


def _number(data: bytes, layout: _Layout, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], layout.order)
