"""The kinds of attack: a new one is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from scripts.attack.flips import flips
from scripts.attack.operations import disk_full, kills
from scripts.attack.results import Ending

__all__ = ["KINDS", "Attack"]

# Tries of these numbers with a seed: the same case for the same number and seed, in their order.
Attack = Callable[[range, int], Iterator[Ending]]

KINDS: Mapping[str, Attack] = {
    "kills": kills,
    "full-disk": disk_full,
    "flips": flips,
}
