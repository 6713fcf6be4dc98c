"""Units of C that call each other, one a family."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from visionshare.codegen.c_text import check_identifier, render, table, template
from visionshare.errors import InputError

__all__ = ["QUANTIZATIONS", "Unit", "Writer"]

# Bits of the tables, by the name of the variant.
QUANTIZATIONS = {"none": None, "int8": 8, "int16": 16}
_DEEPEST = 16


@dataclass(frozen=True)
class Unit:
    """A family in C: a function ``static void name(image, work, features)``.

    Parameters
    ----------
    name : str
        Of the function, and first part of all names of the unit.
    source : str
        Tables and functions.
    work : dict of str to (str, int)
        Arrays of ``struct name_work``, the memory that the function writes to: type and length.
    inner : tuple of Unit
        Units that the function calls one after the other; they share one piece of memory, the
        member ``inner``.
    math : bool
        Whether it calls the mathematical library.
    """

    name: str
    source: str
    work: dict[str, tuple[str, int]] = field(default_factory=dict)
    inner: tuple[Unit, ...] = ()
    math: bool = False

    @property
    def struct(self) -> str:
        """The C of ``struct name_work``."""
        lines = [f"    {kind} {name}[{size}];" for name, (kind, size) in self.work.items()]
        if self.inner:
            held = [f"        struct {unit.name}_work {unit.name};" for unit in self.inner]
            lines += ["    union {", *held, "    } inner;"]
        # A structure without members is no C.
        body = "\n".join(lines or ["    char unused;"])
        return f"struct {self.name}_work {{\n{body}\n}};"


@dataclass
class Writer:
    """Collects the units of a classifier, innermost first.

    Parameters
    ----------
    prefix : str
        First part of every name.
    pixel : {"uint8_t", "float"}
        Type of a pixel.
    bits : {8, 16}, optional
        Bits of quantized tables; floats when omitted.
    """

    prefix: str
    pixel: str
    bits: int | None
    units: list[Unit] = field(default_factory=list)
    _depth: int = 0

    def __post_init__(self) -> None:
        check_identifier("name", self.prefix)

    @property
    def bytes(self) -> bool:
        """Whether pixels are bytes."""
        return self.pixel == "uint8_t"

    def add(self, family: Any) -> Unit:
        """Return the unit of a family, emitted after those that it needs.

        Raises
        ------
        InputError
            If the family cannot be written in C.
        """
        if self._depth >= _DEEPEST:
            raise InputError("family", "families inside families", f"at most {_DEEPEST} levels")
        self._depth += 1
        unit: Unit = family.to_c(self)
        self._depth -= 1
        self.units.append(unit)
        return unit

    def ram(self, unit: Unit) -> int:
        """Return the bytes of a unit's structure on a small core, with sums in floats."""
        cell = 4 if self.bits is None else 1
        sizes = {f"{self.prefix}_cell": cell, f"{self.prefix}_pixel": 1 if self.bytes else 4}
        own = [-(-sizes.get(kind, 4) * size // 4) * 4 for kind, size in unit.work.values()]
        return sum(own) + max((self.ram(inner) for inner in unit.inner), default=0)

    def name(self, kind: str) -> str:
        """Return the name of the next unit of a kind; call it after the inner units are added."""
        return f"{self.prefix}_{kind}{len(self.units)}"

    def unit(
        self,
        module: str,
        name: str,
        tables: dict[str, np.ndarray],
        words: dict[str, str | int],
        work: dict[str, tuple[str, int]] | None = None,
        inner: tuple[Unit, ...] = (),
        math: bool = False,
    ) -> Unit:
        """Return a unit of tables and the C beside a module.

        Parameters
        ----------
        module : str
            Its ``__file__``.
        name : str
            As :meth:`name` gave it.
        tables : dict of str to ndarray
            By the last part of their names.
        words : dict
            What replaces the words of the C; NAME, PREFIX, MACRO and PIXEL are there already.
        work, inner, math
            As in :class:`Unit`.
        """
        known = {
            "name": name,
            "prefix": self.prefix,
            "macro": self.prefix.upper(),
            "pixel": f"{self.prefix}_pixel",
        }
        held = [table(f"{name}_{part}", values) for part, values in tables.items()]
        code = render(template(module), {**known, **words})
        source = "\n\n".join([*held, code.strip()])
        return Unit(name, source, work or {}, inner, math)
