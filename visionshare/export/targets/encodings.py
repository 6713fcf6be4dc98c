"""What instructions of Arm's Cortex-M and of RISC-V do that takes further cycles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Events(NamedTuple):
    """What the instruction at each half word does, counts of shape (n,), int64.

    Half words at which no instruction begins have meaningless ones.
    """

    #: Values that it loads or, of Arm, stores.
    accesses: np.ndarray
    #: Calls, and returns that load their address.
    calls: np.ndarray
    divisions: np.ndarray


def events(code: bytes, machine: str) -> Events:
    """Return the events of a program for a machine, "arm" or "riscv"."""
    first = np.frombuffer(code[: len(code) // 2 * 2], "<u2").astype(np.int64)
    second = np.append(first[1:], 0)
    return (_of_thumb if machine == "arm" else _of_riscv)(first, second)


def _of_thumb(first: np.ndarray, second: np.ndarray) -> Events:
    """As the Armv7-M Architecture Reference Manual says (DDI 0403), A5.2 and A5.3."""
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
    accesses = np.where(top == 0xC, _ones(first & 0xFF), found)
    # 4) BL, and POP of the program counter; SDIV and UDIV.
    calls = ((first & 0xF800) == 0xF000) & ((second & 0xD000) == 0xD000)
    calls |= (first & 0xFF00) == 0xBD00
    divisions = (first & 0xFFD0) == 0xFB90
    return Events(accesses, calls.astype(np.int64), divisions.astype(np.int64))


def _of_riscv(first: np.ndarray, second: np.ndarray) -> Events:
    """As the RISC-V Instruction Set Manual says, chapters RV32/64G and "C"."""
    operation = first & 0x7F
    # Quadrants 0 and 2 of 16 bits: C.LW and C.LWSP.
    short = ((first & 3) % 2 == 0) & (first >> 13 == 0b010)
    loads = (operation == 0b0000011) | short
    multiplied = (operation == 0b0110011) & (second >> 9 == 1)
    divisions = multiplied & (first & 0x4000 != 0)
    none = np.zeros_like(first)
    return Events(loads.astype(np.int64), none, divisions.astype(np.int64))


def _ones(words: np.ndarray) -> np.ndarray:
    """Return how many bits are set in each word of 16 bits."""
    octets = words.astype(">u2").view(np.uint8).reshape(-1, 2)
    return np.asarray(np.unpackbits(octets, axis=1).sum(axis=1, dtype=np.int64))
