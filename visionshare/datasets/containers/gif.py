"""GIF: the screen and its images, without comments and other extensions."""

from __future__ import annotations

from visionshare.datasets.containers.container import Container, number

_IMAGE = 0x2C
_EXTENSION = 0x21
_CONTROL = 0xF9
_TRAILER = 0x3B
# Data comes in blocks of up to 255 bytes. Encoders fill them, so a file has few for its bytes.
_FREE_BLOCKS = 20_000
_BYTES_PER_BLOCK = 64


def read_gif(data: bytes) -> Container:
    """Return a GIF of its images alone."""
    width = number(data, 6, 2, "little")
    height = number(data, 8, 2, "little")
    position = 13 + _table_bytes(data[10])
    kept = [data[:position]]
    blocks = _Blocks(data)
    control = b""
    n_images = 0
    while position < len(data):
        kind = data[position]
        start = position
        if kind == _EXTENSION:
            position = blocks.end(start + 2)
            if data[start + 1 : start + 2] == bytes([_CONTROL]):
                control = data[start:position]
        elif kind == _IMAGE:
            # After the descriptor: its colors, the first code's bits, and the blocks.
            position = blocks.end(start + 10 + _table_bytes(data[start + 9]) + 1)
            kept += [control, data[start:position]]
            if n_images == 0:
                left, top, wide, high = (number(data, start + i, 2, "little") for i in (1, 3, 5, 7))
                width = max(width, left + wide)
                height = max(height, top + high)
            control = b""
            n_images += 1
        elif kind == _TRAILER:
            break
        else:
            position += 1
            blocks.count(1)
    if n_images == 0:
        raise ValueError("no image")
    file = b"".join(kept) + bytes([_TRAILER])
    return Container("GIF", file, (width, height), n_pages=n_images)


def _table_bytes(flags: int) -> int:
    """Return the bytes of a table of colors."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


class _Blocks:
    """Counts the blocks of data, so that walking through them costs no more than the bytes do."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = _FREE_BLOCKS + len(data) // _BYTES_PER_BLOCK

    def count(self, n: int) -> None:
        self._left -= n
        if self._left < 0:
            raise ValueError("very many small blocks")

    def end(self, position: int) -> int:
        """Return where the blocks that begin at a position end."""
        size = 1
        while size > 0:
            self.count(1)
            size = self._data[position] if position < len(self._data) else 0
            position += size + 1
        return min(position, len(self._data))
