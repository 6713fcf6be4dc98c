"""TIFF: one page's pixels and how they are stored, without all other entries and pages."""

from __future__ import annotations

from functools import partial

from visionshare.datasets.containers.container import Container, number

_MAX_PAGES = 10_000
_MAX_ENTRIES = 4096
_MAX_PARTS = 1 << 16
_WIDTH = 256
_HEIGHT = 257
_ORIENTATION = 274
# Where strips and tiles begin, and their bytes.
_OFFSETS = (273, 324)
_COUNTS = (279, 325)
# Size, bits, compression, colors, fill order, strips, samples, planes, fax options, predictor,
# color map, tiles, extra samples, sample format, JPEG tables, and YCbCr. All else says nothing
# of the values of pixels.
_KEPT = {
    254, 255, 256, 257, 258, 259, 262, 266, 273, 277, 278, 279, 284, 292, 293, 317, 320, 322,
    323, 324, 325, 332, 338, 339, 340, 341, 347, 512, 513, 514, 515, 517, 518, 519, 520, 521,
    529, 530, 531, 532,
}  # fmt: skip
# Bytes of a value of each kind, and the kinds of whole numbers.
_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
_WHOLE = (1, 3, 4, 16)


def read_tiff(data: bytes, page: int = 0) -> Container:
    """Return a TIFF of one page; its directory stands at the end and names only pixels."""
    file = _Tiff(data)
    pages = file.directories()
    if page >= len(pages):
        raise ValueError(f"page {page + 1} of {len(pages)}")
    entries = file.entries(pages[page])
    size = file.first(entries.get(_WIDTH)), file.first(entries.get(_HEIGHT))
    orientation = file.first(entries.get(_ORIENTATION))
    kept = {tag: entry for tag, entry in sorted(entries.items()) if tag in _KEPT}
    file.check_parts(kept)
    return Container(
        "TIFF",
        file.with_directory(list(kept.values())),
        size,
        orientation if 1 <= orientation <= 8 else 1,
        len(pages),
        partial(read_tiff, data),
    )


class _Tiff:
    """A TIFF of whatever byte order; a BigTIFF has larger counts and offsets."""

    def __init__(self, data: bytes) -> None:
        is_big = 0x2B in data[2:4]
        self._data = data
        self._is_little = data[:2] == b"II"
        self._offset = 8 if is_big else 4
        self._count = 8 if is_big else 2
        self._entry = 20 if is_big else 12

    def directories(self) -> list[int]:
        """Return where the directories of all pages begin."""
        found: dict[int, None] = {}
        at = self._number(self._offset, self._offset)
        # A directory that was there is the end: the chain is a circle.
        while at and at not in found and at + self._count <= len(self._data):
            if len(found) == _MAX_PAGES:
                raise ValueError(f"more than {_MAX_PAGES} pages")
            found[at] = None
            end = at + self._count + self._number(at, self._count) * self._entry
            at = self._number(end, self._offset)
        if not found:
            raise ValueError("no directory")
        return list(found)

    def entries(self, directory: int) -> dict[int, int]:
        """Return where each entry of a directory begins, by its tag."""
        n = self._number(directory, self._count)
        if n > _MAX_ENTRIES:
            raise ValueError(f"{n} entries in a directory")
        first = directory + self._count
        starts = range(first, first + n * self._entry, self._entry)
        return {self._number(start, 2): start for start in starts}

    def first(self, entry: int | None) -> int:
        """Return the only number of an entry, 0 where there is none."""
        if entry is None or self._length(entry) != 1:
            return 0
        return next(iter(self._values(entry)), 0)

    def check_parts(self, entries: dict[int, int]) -> None:
        """Check that entries name no more bytes than there are: readers believe them."""
        named = sum(self._length(e) * _BYTES.get(self._kind(e), 1) for e in entries.values())
        for tag in (*_OFFSETS, *_COUNTS):
            if tag in entries and self._length(entries[tag]) > _MAX_PARTS:
                raise ValueError(f"more than {_MAX_PARTS} strips or tiles")
        for tag in _COUNTS:
            if tag in entries:
                named += sum(self._values(entries[tag]))
        if named > 2 * len(self._data):
            raise ValueError(f"announces {named} bytes and has {len(self._data)}")

    def with_directory(self, entries: list[int]) -> bytes:
        """Return the file with one directory, of these entries, at its end."""
        data = self._data
        # Directories begin at an even byte.
        padding = bytes(len(data) % 2)
        head = data[: self._offset] + self._bytes(len(data) + len(padding), self._offset)
        directory = [data[start : start + self._entry] for start in entries]
        count = self._bytes(len(entries), self._count)
        parts = (head, data[len(head) :], padding, count, *directory, bytes(self._offset))
        return b"".join(parts)

    def _kind(self, entry: int) -> int:
        return self._number(entry + 2, 2)

    def _length(self, entry: int) -> int:
        return self._number(entry + 4, self._offset)

    def _values(self, entry: int) -> list[int]:
        """Return the numbers of an entry, if they are whole."""
        kind = self._kind(entry)
        if kind not in _WHOLE:
            return []
        size = _BYTES[kind]
        n_bytes = self._length(entry) * size
        at = entry + 4 + self._offset
        if n_bytes > self._offset:
            at = self._number(at, self._offset)
        return [self._number(i, size) for i in range(at, at + n_bytes, size)]

    def _number(self, start: int, size: int) -> int:
        return number(self._data, start, size, "little" if self._is_little else "big")

    def _bytes(self, value: int, size: int) -> bytes:
        return value.to_bytes(size, "little" if self._is_little else "big")
