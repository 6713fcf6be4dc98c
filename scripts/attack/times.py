"""Inputs that are expensive for their size: each must be read, or refused, in a CPU second."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from scripts.attack.costs import COSTS, Costly
from scripts.attack.damage import mutated
from scripts.attack.forked import Attempt, forked, outcome
from scripts.attack.results import Ending
from visionshare.errors import VisionshareError

__all__ = ["Timed", "cpu_seconds"]

# What each encoded picture of a set, and each KiB of packed text, may take besides.
_PER_PICTURE = 1e-4
# A process that no signal interrupts is ended after twice as long, by the clock.
_CLOCK = 40.0
# Made by one process.
_TRIES = 120


@dataclass(frozen=True)
class Timed:
    """The kind of attack: every format in turn, built inputs and damaged samples by turns.

    Attributes
    ----------
    sorts : mapping of str to Costly
    limit : float, default 1
        CPU seconds that one input may take, of all threads and child processes; of a set of
        encoded pictures 0.1 ms more for each, of packed text for each KiB.
    size : int, default 10 MiB
        Bytes of the largest inputs.
    """

    sorts: Mapping[str, Costly] = field(default_factory=lambda: COSTS)
    limit: float = 1.0
    size: int = 10 << 20

    def __call__(self, tries: range, seed: int) -> Iterator[Ending]:
        # What tries leave behind adds up in a process that lives long.
        for first in range(0, len(tries), _TRIES):
            some = tries[first : first + _TRIES]
            yield from forked(lambda: self._ready(seed), some, self.sort, seconds=_CLOCK)

    def sort(self, number: int) -> str:
        """Return the name of the format that a try takes."""
        return list(self.sorts)[number % len(self.sorts)]

    def make(self, seed: int, number: int) -> tuple[str, bytes]:
        """Return what the input of a try is called, and the input."""
        name = self.sort(number)
        costly = self.sorts[name]
        turn = number // len(self.sorts)
        rng = np.random.default_rng((seed, zlib.crc32(name.encode()), number))
        seeds = costly.seeds()
        if turn % 2 and seeds:
            content = seeds[int(rng.integers(len(seeds)))]
            return "damaged", mutated(content, rng)
        case = list(costly.builders)[turn // 2 % len(costly.builders)]
        # The first of each case is the largest.
        share = 1.0 if turn // 2 < len(costly.builders) else rng.uniform(0.1, 1)
        return case, costly.builders[case](int(share * self.size), rng)

    def attempt(self, seed: int, number: int) -> Ending:
        """Use the input of a try, and judge what it took."""
        case, content = self.make(seed, number)
        use = self.sorts[self.sort(number)].use
        allowed = self.limit

        def used(_: int) -> Ending:
            nonlocal allowed
            allowed += _PER_PICTURE * use(content)
            return Ending("survived")

        begun = cpu_seconds()
        ending = outcome(used, number)
        seconds = cpu_seconds() - begun
        about = f"{case}, {len(content)} bytes"
        if ending.ended == "survived" and seconds > allowed:
            ending = Ending("crashed", f"{seconds:.2f} CPU seconds: {about}")
        elif ending.fault:
            ending = ending._replace(fault=f"{about}: {ending.fault}")
        return ending._replace(seconds=seconds)

    def _ready(self, seed: int) -> Attempt:
        # What is imported and compiled once is no input's cost.
        for costly in self.sorts.values():
            for content in costly.seeds()[:4]:
                with suppress(VisionshareError):
                    costly.use(content)
        return lambda number: self.attempt(seed, number)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children that ended."""
    return float(sum(os.times()[:4]))
