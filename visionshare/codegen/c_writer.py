"""Units of C that call each other, one per family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.codegen.c_text import check_identifier, table
from visionshare.codegen.templates import render_file
from visionshare.errors import InputError

# Bits of the tables, by the name of the variant.
QUANTIZATIONS = {"none": None, "int4": 4, "int8": 8, "int16": 16}
_DEEPEST = 16


class WorkArray(NamedTuple):
    """An array of the memory that a unit writes to."""

    type: str
    length: int


@dataclass(frozen=True)
class Unit:
    """A family in C: a function ``static void name(image, work, features)``."""

    name: str
    source: str
    work: dict[str, WorkArray] = field(default_factory=dict)
    inner: tuple[Unit, ...] = ()
    math: bool = False
    #: Whether an image may stand where the unit's memory begins.
    in_place: bool = False


def raster_values(shape: tuple[int, ...]) -> dict[str, int]:
    """Return rows, columns and channels of an image under the names that templates have."""
    return dict(zip(("height", "width", "channels"), shape, strict=True))


def aligned(size: int, to: int) -> int:
    """Return the next multiple of a number."""
    return -(-size // to) * to


@dataclass
class Writer:
    """Collects the units of a classifier, innermost first."""

    prefix: str
    pixel: str
    bits: int | None
    units: list[Unit] = field(default_factory=list)
    examples: np.ndarray | None = None
    vectors: bool = False
    #: Whether tables are data that a program is given, and these.
    blob: bool = False
    data: bytearray = field(default_factory=bytearray)
    _depth: int = field(default=0, init=False, repr=False)
    _on_floats: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        check_identifier("name", self.prefix)

    @property
    def bytes(self) -> bool:
        """Whether the pixels of the images that a unit sees are bytes."""
        return self.pixel == "uint8_t" and not self._on_floats

    @property
    def pixel_type(self) -> str:
        """The C name of the type of a pixel of the images that a unit sees."""
        return "float" if self._on_floats else f"{self.prefix}_pixel"

    @property
    def sum_type(self) -> str:
        """The C name of the type of sums over all inputs, which the user may make double."""
        return f"{self.prefix.upper()}_SUM"

    @property
    def flash(self) -> str:
        """The C qualifier of tables in flash, of cores that have other instructions to read it."""
        return f"{self.prefix.upper()}_FLASH"

    def add(self, family: Any) -> Unit:
        """Return the unit of a family, emitted after those that it needs."""
        if self._depth >= _DEEPEST:
            raise InputError("family", "families inside families", f"at most {_DEEPEST} levels")
        self._depth += 1
        try:
            unit: Unit = family.to_c(self)
        finally:
            self._depth -= 1
        self.units.append(unit)
        return unit

    @contextmanager
    def seeing(self, floats: bool) -> Iterator[None]:
        """Write units inside the block for images of floats, or for images as they are."""
        before = self._on_floats
        self._on_floats = before or floats
        try:
            yield
        finally:
            self._on_floats = before

    def ram(self, unit: Unit) -> int:
        """Return the bytes of a unit's structure on a small core, with sums in floats."""
        return self._layout(unit)[0]

    def _layout(self, unit: Unit) -> tuple[int, int]:
        """Return the bytes of a unit's structure and of the largest number in it."""
        sizes = {
            "int8_t": 1,
            "uint8_t": 1,
            "uint16_t": 2,
            "int64_t": 8,
            f"{self.prefix}_pixel": 1 if self.pixel == "uint8_t" else 4,
        }
        # Bytes and alignment of each member; inner units are a union of their structures.
        members = []
        for kind, length in unit.work.values():
            size = sizes.get(kind, 4)
            members.append((size * length, size))
        inner = [self._layout(other) for other in unit.inner]
        if inner:
            widest = max(align for _, align in inner)
            members.append((aligned(max(size for size, _ in inner), widest), widest))
        if not members:
            # The member without a use that C asks for.
            return 1, 1
        total = 0
        for size, align in members:
            total = aligned(total, align) + size
        alignment = max(align for _, align in members)
        return aligned(total, alignment), alignment

    def unit(
        self,
        module: str,
        kind: str,
        tables: Mapping[str, np.ndarray],
        values: Mapping[str, Any],
        work: Mapping[str, WorkArray] | None = None,
        inner: tuple[Unit, ...] = (),
        math: bool = False,
        in_flash: bool = False,
    ) -> Unit:
        """Return a unit of tables and of the template beside a module; add inner units before."""
        # Where tables are ``in_flash``, the template says ``flash`` of what it reads them through.
        name = f"{self.prefix}_{kind}{len(self.units)}"
        known = {
            "name": name,
            "prefix": self.prefix,
            "macro": self.prefix.upper(),
            "flash": self.flash,
            "pixel": self.pixel_type,
            "sum": self.sum_type,
            "quantized": self.bits is not None,
        }
        code = render_file(Path(module).with_suffix(".c.j2"), {**known, **values})
        space = f"{self.flash} " if in_flash else ""
        constants = [
            table(f"{name}_{part}", numbers, None, space) for part, numbers in tables.items()
        ]
        return Unit(name, "\n\n".join([*constants, code.strip()]), dict(work or {}), inner, math)
