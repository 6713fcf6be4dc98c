"""The description of a meter: regions of a frame, in a TOML file."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from visionshare.errors import DataError, InputError
from visionshare.errors.names import did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


#: What a pointer's needle differs in from the dial.
COLORS = ("red", "dark", "light")
Region = tuple[int, int, int, int]


@dataclass(frozen=True)
class Pointer:
    """A needle on a dial of ten: its axis, the radius of its tip, and how it differs.

    Examples
    --------
    >>> Pointer(center=(511, 260), radius=48, color="dark").clockwise
    True
    """

    center: tuple[float, float]
    radius: float
    color: str = "red"
    zero: float = 0.0
    clockwise: bool = True

    def __post_init__(self) -> None:
        _numbers("pointers.center", self.center, 2)
        _numbers("pointers.radius", (self.radius,), 1, least=4)
        _numbers("pointers.zero", (self.zero,), 1)
        if self.color not in COLORS:
            raise InputError("pointers.color", self.color, " or ".join(map(repr, COLORS)))


@dataclass(frozen=True)
class Meter:
    """Where a meter's digits and pointers are on its frames.

    Attributes
    ----------
    size : tuple of int
        Width and height of a frame, in pixels.
    digits : tuple of Region
        Left, top, width and height of each digit's window, the first digit first.
    pointers : tuple of Pointer
        Behind the digits, the one that counts most first.
    rotation : float
        Degrees, counterclockwise, by which frames are turned before all else.
    decimals : int
        How many of the digits and pointers stand behind the decimal sign.
    marks : tuple of Region
        Regions of the turned reference that are found again on each frame.
    reference : str
        A frame, beside the TOML file, whose regions these are.
    search : int
        How many pixels a mark may be away.
    least_match, least_confidence : float
        Below these correlations of marks, or confidences of digits, the reading is unknown.
    pitch : float
        From a digit to the next on its wheel, in heights of a digit.
    max_rate : float
        The largest change in an hour; 0: any.
    may_decrease : bool

    Examples
    --------
    >>> meter = Meter(size=(60, 40), digits=((10, 5, 20, 30),), decimals=1)
    >>> meter.digits[0]
    (10, 5, 20, 30)
    """

    size: tuple[int, int]
    digits: tuple[Region, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    rotation: float = 0.0
    decimals: int = 0
    marks: tuple[Region, ...] = ()
    reference: str = ""
    search: int = 40
    least_match: float = 0.6
    least_confidence: float = 0.5
    pitch: float = 1.4
    max_rate: float = 0.0
    may_decrease: bool = False

    def __post_init__(self) -> None:
        _numbers("size", self.size, 2, least=16)
        for name in ("digits", "marks"):
            for region in getattr(self, name):
                _numbers(name, region, 4, least=0)
                left, top, width, height = region
                inside = left + width <= self.size[0] and top + height <= self.size[1]
                if min(width, height) < 4 or not inside:
                    accepted = f"left, top, width, height inside of {self.size[0]} x {self.size[1]}"
                    raise InputError(name, list(region), accepted)
        for pointer in self.pointers:
            x, y = pointer.center
            if not (0 <= x < self.size[0] and 0 <= y < self.size[1]):
                raise InputError("pointers.center", list(pointer.center), "a point of the frame")
        if not self.digits and not self.pointers:
            raise InputError("digits", [], "regions of digits, or pointers")
        if len(self.marks) == 1 or bool(self.marks) != bool(self.reference):
            raise InputError("marks", list(self.marks), "two or more, with a reference frame")
        for name in ("rotation", "least_match", "least_confidence", "pitch", "max_rate"):
            _numbers(name, (getattr(self, name),), 1, least=-360 if name == "rotation" else 0)
        if isinstance(self.search, bool) or self.search not in range(1, max(self.size)):
            raise InputError("search", self.search, "a whole number of pixels, from 1")
        n_places = len(self.digits) + len(self.pointers)
        if isinstance(self.decimals, bool) or self.decimals not in range(n_places + 1):
            raise InputError("decimals", self.decimals, f"a whole number from 0 to {n_places}")


def _numbers(name: str, values: Any, n: int, least: float | None = None) -> None:
    kinds = (int, float)
    good = isinstance(values, (tuple, list)) and len(values) == n
    good = good and all(isinstance(v, kinds) and not isinstance(v, bool) for v in values)
    good = good and all(math.isfinite(v) and (least is None or v >= least) for v in values)
    if not good:
        bound = "" if least is None else f", each at least {least:g}"
        shown = values[0] if n == 1 and isinstance(values, tuple) else values
        raise InputError(name, shown, f"{n} number{'s' * (n > 1)}{bound}")


def read_meter(path: str | os.PathLike[str]) -> Meter:
    """Read the TOML file of a meter."""
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{os.fspath(path)}: no TOML ({error})") from None
    try:
        pointers = values.pop("pointers", [])
        if not isinstance(pointers, list) or not all(isinstance(p, dict) for p in pointers):
            raise InputError("pointers", pointers, "tables [[pointers]]")
        made = tuple(_made(Pointer, "pointers.", pointer) for pointer in pointers)
        meter: Meter = _made(Meter, "", {**values, "pointers": made})
    except InputError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None
    if meter.reference and not (Path(path).parent / meter.reference).is_file():
        raise DataError(f"{os.fspath(path)}: no reference frame {meter.reference!r} beside it")
    return meter


def _made(kind: Any, prefix: str, values: dict[str, Any]) -> Any:
    """Return a table as a Meter or Pointer; unknown and missing keys are named."""
    known = {field.name: field for field in fields(kind)}
    for name in values:
        if name not in known:
            raise InputError(prefix + name, values[name], f"a known key{did_you_mean(name, known)}")
    for name, field in known.items():
        if field.default is MISSING and name not in values:
            raise InputError(prefix + name, "nothing", "a value (this key is required)")
    return kind(**{name: _tuples(value) for name, value in values.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
