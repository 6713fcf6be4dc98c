"""How attacks ended, counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Kind", "Result"]

Kind = Literal["survived", "lost", "silent", "crashed"]


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
        What went wrong in each try that did not survive.
    """

    survived: int = 0
    lost: int = 0
    silent: int = 0
    crashed: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def tries(self) -> int:
        """Number of tries."""
        return self.survived + self.lost + self.silent + self.crashed

    @property
    def failed(self) -> bool:
        """Whether any try did not survive."""
        return self.survived < self.tries

    def add(self, kind: Kind, fault: str = "") -> None:
        """Count a try."""
        setattr(self, kind, getattr(self, kind) + 1)
        if fault:
            self.faults.append(fault)

    def counts(self) -> dict[str, int]:
        """Return the counts as plain values."""
        names = ("survived", "lost", "silent", "crashed")
        return {"tries": self.tries, **{name: getattr(self, name) for name in names}}
