"""Broken and malicious inputs by the million: each must be accepted or be a typed error."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from scripts.attack.damage import Inputs
from scripts.attack.forked import Attempt, forked
from scripts.attack.results import Ending
from visionshare.errors import VisionshareError

__all__ = ["Hostile"]

_WARM_UP = 8


@dataclass(frozen=True)
class Hostile:
    """A kind of attack: the tries take its sorts of input in turn.

    Attributes
    ----------
    sorts : mapping of str to Inputs
    """

    sorts: Mapping[str, Inputs]

    def __call__(self, tries: range, seed: int) -> Iterator[Ending]:
        return forked(lambda: self._ready(seed), tries, self.sort)

    @property
    def parts(self) -> Sequence[str]:
        """Names of the sorts."""
        return list(self.sorts)

    def only(self, parts: Sequence[str]) -> Hostile:
        """Return the same attack with some of the sorts."""
        return Hostile({name: self.sorts[name] for name in parts})

    def sort(self, number: int) -> str:
        """Return the name of the sort that a try takes."""
        return list(self.sorts)[number % len(self.sorts)]

    def make(self, seed: int, number: int) -> tuple[bytes, np.random.Generator]:
        """Return the input of a try, and the generator that decides how it is used."""
        name = self.sort(number)
        rng = np.random.default_rng((seed, zlib.crc32(name.encode()), number))
        return self.sorts[name].mutate(self.sorts[name].seeds(), rng), rng

    def attempt(self, seed: int, number: int) -> Ending:
        """Use the input of a try; raises what the library raises."""
        content, rng = self.make(seed, number)
        self.sorts[self.sort(number)].attempt(content, rng)
        return Ending("survived")

    def _ready(self, seed: int) -> Attempt:
        # Compiled kernels and thread stacks take what they take: the bound is on top of it.
        for inputs in self.sorts.values():
            for content in inputs.seeds()[:_WARM_UP]:
                with suppress(VisionshareError):
                    inputs.attempt(content, np.random.default_rng(seed))
        return lambda number: self.attempt(seed, number)
