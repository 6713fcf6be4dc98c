"""Whole numbers of few bits side by side in bytes, as files and tables of C hold them."""

from __future__ import annotations

import numpy as np

from visionshare.generators.layers.integers.rounding import FORMATS

#: Numbers in a byte, by their bits: five ternary ones are a number below 243.
PER_BYTE: dict[int | str, int] = {8: 1, 4: 2, 2: 4, "ternary": 5}


def packed_bytes(n: int, bits: int | str) -> int:
    """Return how many bytes hold so many numbers side by side."""
    return -(-n // PER_BYTE[bits])


def packed(numbers: np.ndarray, bits: int | str) -> np.ndarray:
    """Return numbers in bytes, the first in the lowest digit; the last byte is filled up."""
    # A digit is n of 8 bits as two's complement, n + 8 of 4 bits, (n + 3) / 2 of 2 bits, and n +
    # 1 of the base 3.
    flat = np.asarray(numbers, np.int64).ravel()
    if bits == 8:
        return flat.astype(np.int8).view(np.uint8)
    digits = (flat + 3) // 2 if bits == 2 else flat - _zero(bits)
    base = _base(bits)
    per_byte = PER_BYTE[bits]
    # What fills the last byte is zero, where the format has it.
    fill = 0 if bits == 2 else -_zero(bits)
    whole = np.full(packed_bytes(len(flat), bits) * per_byte, fill)
    whole[: len(flat)] = digits
    places = base ** np.arange(per_byte)
    return np.asarray((whole.reshape(-1, per_byte) * places).sum(axis=1), np.uint8)


def unpacked(data: np.ndarray, bits: int | str, n: int) -> np.ndarray:
    """Return the first ``n`` numbers in bytes, int64: the inverse of :func:`packed`."""
    # Digits that are no number of the format give one outside of it, which those who read files
    # refuse.
    data = np.asarray(data, np.uint8)
    if bits == 8:
        return data.view(np.int8)[:n].astype(np.int64)
    digits = data.astype(np.int64)[:, None] // _base(bits) ** np.arange(PER_BYTE[bits])
    # The highest digit of a byte above 242 is no ternary one.
    digits[:, :-1] %= _base(bits)
    flat = digits.ravel()[:n]
    return np.asarray(2 * flat - 3 if bits == 2 else flat + _zero(bits))


def _zero(bits: int | str) -> int:
    """Return the number whose digit is 0."""
    return -8 if bits == 4 else FORMATS[bits].low


def _base(bits: int | str) -> int:
    return {8: 256, 4: 16, 2: 4, "ternary": 3}[bits]
