"""Unions of families in C: one unit after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visionshare.codegen.c_writer import WorkArray

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.union.family import UnionOfFamilies


class _EmittedPart(NamedTuple):
    """A part in the template: its unit, and where its rows of the table of features begin."""

    unit: str
    n_features: int
    begin: int


def emit(family: UnionOfFamilies, writer: Writer) -> Unit:
    """Return the unit of a union, after the units of its parts."""
    parts = [(part, ids) for part, ids in zip(family.parts_, family._ids, strict=True) if len(ids)]
    units = tuple(writer.add(part) for part, _ in parts)
    sizes = [len(ids) for _, ids in parts]
    begins = np.cumsum([0, *sizes]).tolist()
    calls = [
        _EmittedPart(unit.name, size, begin)
        for unit, size, begin in zip(units, sizes, begins, strict=False)
    ]
    tables = {"features": np.concatenate([np.empty(0, np.int64), *(ids for _, ids in parts)])}
    work = {"values": WorkArray("float", max(sizes, default=1))}
    return writer.unit(__file__, "union", tables, {"parts": calls}, work, units)
