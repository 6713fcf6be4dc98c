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
from visionshare.image_classifier.structure import Structure, cost_of, flash_of
from visionshare.machine.resources import parse_size

#: Multiply-accumulates per image where no budget is given.
DEFAULT_MACS = 1_000_000
# Where flash is limited, which is to be filled.
_MACS_OF_FLASH = 3_000_000
_ACCEPTED = 'a number of multiply-accumulates, or a table such as {"macs": 200_000, "bytes": 65536}'
_NAMES = ("macs", "bytes", "microseconds", "flash")
# Also as text, such as "10KiB".
_SIZES = ("bytes", "flash")
# Of a limit of microseconds: machines differ from one call to the next.
_CAUTION = 0.8


@dataclass(frozen=True)
class Budget:
    """Limits of what a classifier costs; None where there is none.

    Examples
    --------
    >>> Budget.of({"flash": "10KiB"})
    Budget(macs=3000000, nbytes=None, microseconds=None, flash=10240)
    >>> Budget.of(200_000).macs
    200000
    """

    macs: int | None = DEFAULT_MACS
    nbytes: int | None = None
    #: Time of one image among many, on one thread of this machine.
    microseconds: float | None = None
    #: Flash of a Cortex-M4, code included; classifiers are then learned in integers.
    flash: int | None = None

    @staticmethod
    def of(given: Any, macs: int | None = DEFAULT_MACS) -> Budget:
        """Return the budget that a user says."""
        if given is None:
            return Budget(macs)
        table = dict(given) if isinstance(given, Mapping) else {"macs": given}
        if not table or not set(table) <= set(_NAMES):
            raise InputError("budget", given, _ACCEPTED)
        for name, limit in table.items():
            if isinstance(limit, str) and name in _SIZES:
                table[name] = limit = parse_size(limit, "budget")
            is_number = isinstance(limit, Real) and not isinstance(limit, bool)
            if not is_number or not 1e-3 <= float(limit) < math.inf:
                raise InputError("budget", given, f"{_ACCEPTED}; {name} above 0")
        default = _MACS_OF_FLASH if "flash" in table and macs is not None else macs
        return Budget(
            macs=int(table["macs"]) if "macs" in table else default,
            nbytes=int(table["bytes"]) if "bytes" in table else None,
            microseconds=float(table["microseconds"]) if "microseconds" in table else None,
            flash=int(table["flash"]) if "flash" in table else None,
        )

    def __str__(self) -> str:
        """Return the limits in words."""
        limits = (
            (self.macs, "multiply-accumulates"),
            (self.nbytes, "bytes"),
            (self.microseconds, "microseconds"),
            (self.flash, "bytes of flash"),
        )
        return ", ".join(f"{limit:,} {what}" for limit, what in limits if limit is not None)

    def use(
        self,
        structure: Structure,
        raster: tuple[int, int, int],
        n_classes: int,
        bits: Bits | None = None,
        members: int = 1,
    ) -> float:
        """Return the largest fraction of a limit that a structure costs: above 1 is too much."""
        # Of several members, whose scores have the mean, it is the structure of each. Microseconds
        # are not known before anything is learned, and flash is that of a classifier in few bits.
        cost = cost_of(structure, raster, n_classes, members)
        parts = [0.0]
        if self.macs is not None:
            parts.append(cost.macs / max(1, self.macs))
        if self.nbytes is not None:
            parts.append(cost.nbytes / max(1, self.nbytes))
        if self.flash is not None and bits is not None:
            parts.append(flash_of(structure, raster, n_classes, bits) / self.flash)
        return max(parts)

    def allows(self, classifier: CompactClassifier, images: np.ndarray) -> bool:
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
        most = 0
        beyond = len(classifier.path) + 1
        while beyond - most > 1:
            middle = (most + beyond) // 2
            if self.allows(classifier.at(middle), images):
                most = middle
            else:
                beyond = middle
        return most

    def rounds_or_error(self, classifier: CompactClassifier, images: np.ndarray) -> int:
        """Return how many rounds keep within the limits."""
        rounds = self.rounds(classifier, images)
        if rounds == 0:
            accepted = "a larger one: the classifier of all images exceeds it"
            raise InputError("budget", str(self), accepted)
        return rounds

    def at_the_rate_of(self, classifier: CompactClassifier, images: np.ndarray) -> Budget:
        """Return a budget whose multiply-accumulates take no longer than the microseconds say."""
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
