"""What a sort of input is, and bytes with faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Inputs:
    """A sort of input.

    Attributes
    ----------
    seeds : callable
        Returns valid inputs.
    mutate : callable
        Returns an input made from these, with a generator.
    attempt : callable
        Uses an input as the library would; raises what the library raises.
    """

    seeds: Callable[[], list[bytes]]
    mutate: Callable[[list[bytes], np.random.Generator], bytes]
    attempt: Callable[[bytes, np.random.Generator], None]


NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 100_000)


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with one to four faults of any kind."""
    damaged = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        start = int(rng.integers(0, len(damaged) + 1))
        length = int(rng.integers(1, 9))
        fault = rng.integers(0, 7)
        if fault == 0:
            del damaged[start:]
        elif fault == 1:
            damaged[start : start + length] = rng.bytes(length)
        elif fault == 2:
            damaged[start:start] = rng.bytes(length)
        elif fault == 3:
            del damaged[start : start + length]
        elif fault == 4:
            size = int(rng.choice([1, 2, 4]))
            order = ("little", "big")[rng.integers(0, 2)]
            value = int(rng.choice(NUMBERS)) & (256**size - 1)
            damaged[start : start + size] = value.to_bytes(size, order)
        elif fault == 5:
            copied = int(rng.integers(1, 65))
            other = int(rng.integers(0, len(damaged) + 1))
            damaged[start:start] = damaged[other : other + copied]
        elif start < len(damaged):
            damaged[start] ^= 1 << int(rng.integers(0, 8))
    return bytes(damaged)
