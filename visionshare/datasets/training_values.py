"""The values of training images: what later images are measured by."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from visionshare.errors import InputError

BYTE = (0.0, 255.0)
_FRACTION = (0.0, 1.0)
_KINDS = ("bytes", "whole", "other")
_ARRAYS = ("pictures", "rasters", "numbers")
#: Floats up to it may be fractions that something has overshot.
OVERSHOT = 2.0
# Values that reach less than this part of the training range, or more than so many times it.
_TOO_DARK = 1 / 16
_TOO_BRIGHT = 2.0


@dataclass(frozen=True)
class TrainingValues:
    """The values of the training images, by which later images are measured."""

    low: float = 0.0
    high: float = 255.0
    kind: str = "bytes"
    arrays: str = "pictures"

    def __post_init__(self) -> None:
        for name, known in (("kind", _KINDS), ("arrays", _ARRAYS)):
            if getattr(self, name) not in known:
                raise InputError(name, getattr(self, name), ", ".join(map(repr, known)))
        numbers = all(type(value) in (int, float) for value in self.range)
        if not numbers or not np.isfinite(self.range).all() or self.low > self.high:
            raise InputError("low, high", self.range, "two finite numbers in ascending order")

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return self.low, self.high

    @property
    def becomes_bytes(self) -> tuple[float, float]:
        """The values that become 0 and 255; 0 and 255 themselves where the range is not known."""
        return self.range if self.high > self.low else BYTE

    def to_values(self) -> dict[str, Any]:
        """Return plain values that JSON holds."""
        return asdict(self)

    @staticmethod
    def from_values(values: Any) -> TrainingValues | None:
        """Return what :meth:`to_values` described; None for None."""
        if values is None:
            return None
        names = {field.name for field in fields(TrainingValues)}
        if not isinstance(values, Mapping) or set(values) != names:
            raise InputError("values", values, f"a table of {', '.join(sorted(names))}")
        return TrainingValues(**values)

    def check(self, arrays: Sequence[np.ndarray]) -> None:
        """Refuse values that are certainly of another unit; warn of those that seem to be."""
        # Images that are black may be of any unit.
        filled = [array for array in arrays if array.size and array.dtype not in self._known]
        highest = max((float(array.max()) for array in filled), default=0.0)
        if self.arrays == "pictures":
            self._check_unit(filled, highest)
        self._warn(filled, highest)

    @property
    def _known(self) -> tuple[type, ...]:
        """Types whose unit is known: of bytes, and of 16 bits where they become bytes."""
        if self.kind != "bytes":
            return (bool,)
        return (bool, np.uint8) if self.arrays == "numbers" else (bool, np.uint8, np.uint16)

    def _check_unit(self, arrays: Sequence[np.ndarray], highest: float) -> None:
        floats = [array for array in arrays if array.dtype.kind == "f"]
        if self.range == _FRACTION:
            whole = [array for array in arrays if array.dtype.kind in "iu"]
            most = max((float(array.max()) for array in whole), default=0.0)
            if highest > OVERSHOT or most > 1:
                given = f"values up to {highest:g}"
                raise InputError("images", given, "values from 0 to 1, as in training")
        elif self.range == BYTE and self.kind != "other" and floats:
            most = max(float(array.max()) for array in floats)
            if most <= 1 and any((array != np.rint(array)).any() for array in floats):
                given = f"fractions up to {most:g}"
                raise InputError("images", given, "values from 0 to 255, as in training")

    def _warn(self, arrays: Sequence[np.ndarray], highest: float) -> None:
        lowest = min((float(array.min()) for array in arrays), default=0.0)
        reach = max(highest, -lowest)
        known = max(self.high, -self.low)
        if self.arrays == "numbers":
            # Features take bytes for fractions of 255.
            known /= 255 if self.kind == "bytes" else 1
            reach /= 255 if any(array.dtype == np.uint8 for array in arrays) else 1
        darker = reach < _TOO_DARK * known or (reach <= 1 and known > OVERSHOT)
        brighter = reach > _TOO_BRIGHT * known
        if reach > 0 and known > 0 and (darker or brighter):
            warnings.warn(
                f"the images have values from {lowest:g} to {highest:g}, those of training went "
                f"from {self.low:g} to {self.high:g}: bring them to the same scale",
                UserWarning,
                stacklevel=2,
            )
