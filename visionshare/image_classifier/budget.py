"""What a classifier may cost, as users say it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.errors import InputError
from visionshare.export.targets.flash import flash_bytes
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.machine.resources import parse_size
from visionshare.recipes import Budget
from visionshare.recipes.design.cost import cost_of, flash_of
from visionshare.recipes.design.structure import Structure

__all__ = ["DEFAULT_MACS", "Limits"]

#: Multiply-accumulates per image where no budget is given.
DEFAULT_MACS = 1_000_000
_ACCEPTED = 'a number of multiply-accumulates, or a table such as {"macs": 200_000, "bytes": 65536}'
_NAMES = ("macs", "bytes", "microseconds", "flash")
# Also as text, such as "10KiB".
_SIZES = ("bytes", "flash")
# Of a limit of microseconds: machines differ from one call to the next.
_CAUTION = 0.8


@dataclass(frozen=True)
class Limits:
    """Limits of what a classifier costs; None where there is none.

    Attributes
    ----------
    macs, nbytes : int, optional
    microseconds : float, optional
        Of one image among many, on one thread of this machine.
    flash : int, optional
        Of a Cortex-M4, code included; classifiers are then learned in whole numbers.

    Examples
    --------
    >>> Limits.of({"flash": "10KiB"})
    Limits(macs=1000000, nbytes=None, microseconds=None, flash=10240)
    >>> Limits.of(200_000).macs
    200000
    """

    macs: int | None = DEFAULT_MACS
    nbytes: int | None = None
    microseconds: float | None = None
    flash: int | None = None

    @staticmethod
    def of(budget: Any) -> Limits:
        """Return the limits that a budget says.

        Raises
        ------
        InputError
            If it is none.
        """
        if budget is None:
            return Limits()
        table = budget if isinstance(budget, Mapping) else {"macs": budget}
        if not table or not set(table) <= set(_NAMES):
            raise InputError("budget", budget, _ACCEPTED)
        table = {
            name: parse_size(limit, "budget")
            if isinstance(limit, str) and name in _SIZES
            else limit
            for name, limit in table.items()
        }
        for name, limit in table.items():
            number = isinstance(limit, Real) and not isinstance(limit, bool)
            if not number or not 1e-3 <= float(limit) < math.inf:
                raise InputError("budget", budget, f"{_ACCEPTED}; {name} above 0")
        macs = int(table["macs"]) if "macs" in table else DEFAULT_MACS
        nbytes = int(table["bytes"]) if "bytes" in table else None
        microseconds = table.get("microseconds")
        flash = int(table["flash"]) if "flash" in table else None
        return Limits(macs, nbytes, None if microseconds is None else float(microseconds), flash)

    @property
    def budget(self) -> Budget:
        """The limits that a structure can be compared with before anything is learned."""
        # Less than 1 is no limit of a budget, and nothing costs as little.
        macs, nbytes = (None if v is None else max(1, v) for v in (self.macs, self.nbytes))
        return Budget(macs=macs, nbytes=nbytes)

    def __str__(self) -> str:
        """Return the limits in words."""
        limits = (
            (self.macs, "multiply-accumulates"),
            (self.nbytes, "bytes"),
            (self.microseconds, "microseconds"),
            (self.flash, "bytes of flash"),
        )
        return ", ".join(f"{limit:,} {what}" for limit, what in limits if limit is not None)

    def part(self, n: int) -> Limits:
        """Return what each of ``n`` members of a classifier may cost."""
        nbytes = None if self.nbytes is None else self.nbytes // n
        microseconds = None if self.microseconds is None else self.microseconds / n
        macs = None if self.macs is None else self.macs // n
        return Limits(macs, nbytes, microseconds, self.flash)

    def hold(
        self,
        structure: Structure,
        raster: tuple[int, int, int],
        n_classes: int,
        bits: Bits | None = None,
        members: int = 1,
    ) -> bool:
        """Return whether a structure, in few bits where any are given, keeps within the limits.

        Of several members, whose scores have the mean, it is the structure of each. Microseconds
        are not known before anything is learned.
        """
        cost = cost_of(structure, raster, n_classes, members=members)
        use = self.budget.use(cost)
        if use is not None and use > 1:
            return False
        if self.flash is None or bits is None:
            return True
        return flash_of(structure, raster, n_classes, bits) <= self.flash

    def allow(self, classifier: CompactClassifier, images: np.ndarray) -> bool:
        """Return whether a classifier keeps within the limits."""
        if self.macs is not None and classifier.macs > self.macs:
            return False
        if self.nbytes is not None and classifier.nbytes > self.nbytes:
            return False
        if self.flash is not None and flash_bytes(classifier) > self.flash:
            return False
        return self.microseconds is None or microseconds_of(classifier, images) <= self.microseconds

    def rounds(self, classifier: CompactClassifier, images: np.ndarray) -> int:
        """Return how many rounds of a greedy search keep within the limits: 0 if none do."""
        most, beyond = 0, len(classifier.path) + 1
        while beyond - most > 1:
            t = (most + beyond) // 2
            most, beyond = (t, beyond) if self.allow(classifier.at(t), images) else (most, t)
        return most

    def rounds_or_error(self, classifier: CompactClassifier, images: np.ndarray) -> int:
        """Return how many rounds keep within the limits.

        Raises
        ------
        InputError
            If none do.
        """
        rounds = self.rounds(classifier, images)
        if rounds == 0:
            accepted = "a larger one: what was chosen from all images does not keep within it"
            raise InputError("budget", str(self), accepted)
        return rounds

    def at_the_rate_of(self, classifier: CompactClassifier, images: np.ndarray) -> Limits:
        """Return limits whose multiply-accumulates take no longer than the microseconds say."""
        if self.microseconds is None:
            return self
        each = microseconds_of(classifier, images) / max(1, classifier.macs)
        macs = max(1, int(_CAUTION * self.microseconds / each))
        return replace(self, macs=macs if self.macs is None else min(self.macs, macs))


def microseconds_of(classifier: CompactClassifier, images: np.ndarray) -> float:
    """Return the microseconds that an image takes, among some hundreds, on one thread."""
    part = images[:256]
    classifier.decision_function(part)
    seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        classifier.decision_function(part)
        seconds.append(time.perf_counter() - begun)
    return 1e6 * min(seconds) / len(part)
