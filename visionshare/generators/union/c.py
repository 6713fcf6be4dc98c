"""Unions of families in C: one unit after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.union.family import UnionOfFamilies

__all__ = ["emit"]

_PART = """    {1}(image, &work->inner.{1}, work->values);
    for (j = 0; j < {2}; j++) {{
        features[{0}_places[{3} + j]] = work->values[j];
    }}"""


def emit(family: UnionOfFamilies, writer: Writer) -> Unit:
    """Return the unit of a union, after the units of its parts."""
    parts = [(part, ids) for part, ids in zip(family.parts_, family._ids, strict=True) if len(ids)]
    units = tuple(writer.add(part) for part, _ in parts)
    name, calls, begun = writer.name("union"), [], 0
    for unit, (_, ids) in zip(units, parts, strict=True):
        calls.append(_PART.format(name, unit.name, len(ids), begun))
        begun += len(ids)
    tables = {"places": np.concatenate([np.empty(0, np.int64), *(ids for _, ids in parts)])}
    words: dict[str, str | int] = {"calls": "\n".join(calls)}
    work = {"values": ("float", max((len(ids) for _, ids in parts), default=1))}
    return writer.unit(__file__, name, tables, words, work, units)
