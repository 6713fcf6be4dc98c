"""How many values each instruction of a program for Arm's Cortex-M loads or stores."""

from __future__ import annotations

import numpy as np


def accesses(code: bytes) -> np.ndarray:
    """Return the values that the instruction at each half word loads or stores, (n,), uint64."""
    # Half words at which no instruction begins have a meaningless count (Armv7-M Architecture
    # Reference Manual, DDI 0403, A5.2 and A5.3).
    first = np.frombuffer(code[: len(code) // 2 * 2], "<u2").astype(np.int64)
    second = np.append(first[1:], 0)
    top = first >> 12
    # 1) Instructions of 16 bits: one register, or a list of them.
    one = (first >> 11 == 0b01001) | ((top >= 5) & (top <= 9))
    push_or_pop = (first & 0xF600) == 0xB400
    listed = push_or_pop | (top == 0xC)
    # 2) Instructions of 32 bits: a list, two registers, one register or a table of branches.
    long_list = (first & 0xFE40) == 0xE800
    two = (first & 0xFE40) == 0xE840
    branches = ((first & 0xFFF0) == 0xE8D0) & ((second & 0xFFE0) == 0xF000)
    one |= ((first & 0xFE00) == 0xF800) | branches
    # 3) Floats, one or many; moves of two of them between registers are of the same form.
    of_floats = (second & 0x0E00) == 0x0A00
    floats = of_floats & ((first & 0xFF20) == 0xED00)
    moves = (first & 0xFFE0) == 0xEC40
    many_floats = of_floats & ((first & 0xFE00) == 0xEC00) & ~floats & ~moves
    found = np.select(
        [one, listed, long_list, two, floats, many_floats],
        [1, _ones(first & 0x1FF), _ones(second), 2, 1 + (second >> 8 & 1), second & 0xFF],
        0,
    )
    # A list of LDM and STM has no ninth register.
    return np.where(top == 0xC, _ones(first & 0xFF), found).astype(np.uint64)


def _ones(words: np.ndarray) -> np.ndarray:
    """Return how many bits are set in each word of 16 bits."""
    octets = words.astype(">u2").view(np.uint8).reshape(-1, 2)
    return np.asarray(np.unpackbits(octets, axis=1).sum(axis=1, dtype=np.int64))
