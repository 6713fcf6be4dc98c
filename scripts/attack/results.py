"""How attacks ended, counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

__all__ = ["Ended", "Ending", "Result"]

Ended = Literal["survived", "lost", "silent", "crashed"]
_ENDS = ("survived", "lost", "silent", "crashed")
_KEPT = 1000


class Ending(NamedTuple):
    """How one try ended.

    Attributes
    ----------
    ended : str
        One of survived, lost, silent and crashed.
    fault : str
        What went wrong where it did not survive.
    part : str
        What was attacked, such as a command or a format.
    point, points : int
        Which of how many operations, from 1; 0 where they are not counted.
    seconds : float
        CPU seconds that it took; 0 where they are not measured.
    """

    ended: Ended
    fault: str = ""
    part: str = ""
    point: int = 0
    points: int = 0
    seconds: float = 0.0


@dataclass
class Part:
    """The tries of one part of a kind: how many, the operations that were hit, the slowest."""

    tries: int = 0
    points: int = 0
    hit: set[int] = field(default_factory=set)
    seconds: float = 0.0


@dataclass
class Result:
    """The tries of one kind of attack.

    Attributes
    ----------
    survived : int
        Ended as they should: refused with a typed error, or resumed to the same result.
    lost : int
        Could not be resumed, or left files behind.
    silent : int
        Gave other values without a word.
    crashed : int
        Ended by a signal, by an untyped error, or not at all.
    faults : list of str
        What went wrong in the tries that did not survive, the first of them.
    parts : dict of str to Part
    """

    survived: int = 0
    lost: int = 0
    silent: int = 0
    crashed: int = 0
    faults: list[str] = field(default_factory=list)
    parts: dict[str, Part] = field(default_factory=dict)

    @property
    def tries(self) -> int:
        """Number of tries; the next one has this number."""
        return self.survived + self.lost + self.silent + self.crashed

    @property
    def failed(self) -> bool:
        """Whether any try did not survive."""
        return self.survived < self.tries

    def add(self, ending: Ending) -> None:
        """Count a try."""
        if ending.fault and len(self.faults) < _KEPT:
            self.faults.append(f"{self.tries} {ending.part}: {ending.fault}")
        setattr(self, ending.ended, getattr(self, ending.ended) + 1)
        part = self.parts.setdefault(ending.part, Part())
        part.tries = part.tries + 1
        part.points = ending.points
        part.seconds = max(part.seconds, ending.seconds)
        if ending.point:
            part.hit.add(ending.point)

    def counts(self) -> dict[str, int]:
        """Return the counts as plain values."""
        return {"tries": self.tries, **{name: getattr(self, name) for name in _ENDS}}

    def to_values(self) -> dict[str, Any]:
        """Return everything as plain values, for :meth:`from_values`."""
        parts = {
            name: [p.tries, p.points, sorted(p.hit), p.seconds] for name, p in self.parts.items()
        }
        return {**self.counts(), "faults": self.faults, "parts": parts}

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Result:
        """Return what :meth:`to_values` has made plain."""
        ends = {name: values[name] for name in _ENDS}
        parts = {
            # Counts of before have no seconds.
            name: Part(n, of, set(hit), *seconds)
            for name, (n, of, hit, *seconds) in values["parts"].items()
        }
        return cls(**ends, faults=list(values["faults"]), parts=parts)
