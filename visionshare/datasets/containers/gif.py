"""GIF: the screen and its images, without comments and other extensions."""

from __future__ import annotations

from visionshare.datasets.containers.container import Container

__all__ = ["read_gif"]

_IMAGE, _EXTENSION, _TRAILER = 0x2C, 0x21, 0x3B
_CONTROL = 0xF9
# Data comes in blocks of up to 255 bytes. Encoders fill them: so many at most of a file's bytes.
_FEW_BLOCKS, _BYTES_A_BLOCK = 20_000, 64


def read_gif(data: bytes, all_pages: bool = False) -> Container:
    """Return a GIF of its first image, or of all."""
    width, height = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    position = 13 + _table_bytes(data[10])
    kept = [data[:position]]
    blocks = _Blocks(data)
    control = b""
    n_images = 0
    while position < len(data):
        kind, start = data[position], position
        if kind == _EXTENSION:
            position = blocks.end(start + 2)
            if data[start + 1 : start + 2] == bytes([_CONTROL]):
                control = data[start:position]
        elif kind == _IMAGE:
            left, top, wide, high = (
                int.from_bytes(data[i : i + 2], "little") for i in range(start + 1, start + 9, 2)
            )
            # After the descriptor: its colors, the first code's bits, and the blocks.
            position = blocks.end(start + 10 + _table_bytes(data[start + 9]) + 1)
            if n_images == 0 or all_pages:
                kept += [control, data[start:position]]
            if n_images == 0:
                width, height = max(width, left + wide), max(height, top + high)
            control = b""
            n_images += 1
        elif kind == _TRAILER:
            break
        else:
            position += 1
            blocks.count(1)
    if n_images == 0:
        raise ValueError("no image")
    data = b"".join(kept) + bytes([_TRAILER])
    return Container("GIF", data, (width, height), n_pages=n_images)


def _table_bytes(flags: int) -> int:
    """Return the bytes of a table of colors."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


class _Blocks:
    """Counts the blocks of data, so that walking through them costs what the file's bytes cost."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = _FEW_BLOCKS + len(data) // _BYTES_A_BLOCK

    def count(self, n: int) -> None:
        """Count so many more."""
        self._left -= n
        if self._left < 0:
            raise ValueError("very many small blocks")

    def end(self, position: int) -> int:
        """Return where the blocks that begin at a position end."""
        data, most, start = self._data, self._left, position
        for n in range(most + 1):
            size = data[position] if position < len(data) else 0
            position += size + 1
            if size == 0:
                self.count(n + 1)
                return min(position, len(data))
        raise ValueError(f"very many small blocks from byte {start} on")
