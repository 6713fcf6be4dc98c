"""Scores of several families in whole numbers: as those of one family, or as sums of the parts'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.whole_numbers import WholeScores

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Writer
    from visionshare.generators.union.family import UnionOfFamilies

_LARGEST_SCORE = 2**31 - 1
_LARGEST_FEATURE = 255


def scores(
    family: UnionOfFamilies, writer: Writer, weights: np.ndarray, intercept: np.ndarray
) -> WholeScores | None:
    """Return the unit of scores; None unless all parts have whole numbers."""
    # Parts of one kind, such as the members of a mean, become one family: their code and what it
    # computes of the image is there once. Parts that are whole numbers already are summed.
    parts = [(part, ids) for part, ids in zip(family.parts_, family._ids, strict=True) if len(ids)]
    families = [part for part, _ in parts]
    join = families[0]._whole("joined")
    if join is not None and len({type(part) for part in families}) == 1:
        joined = join(families)
        if joined is not None:
            order = np.concatenate([ids for _, ids in parts])
            return joined.to_whole_scores(writer, weights[:, order], intercept)
    if not all(part.in_whole_numbers for part in families):
        return None
    largest = _LARGEST_FEATURE * np.abs(weights).sum(axis=1, dtype=np.float64) + np.abs(intercept)
    if largest.max(initial=0) > _LARGEST_SCORE:
        return None
    # The first part begins with the intercepts.
    every = [
        part.to_whole_scores(writer, weights[:, ids], intercept * (number == 0))
        for number, (part, ids) in enumerate(parts)
    ]
    summed = [one for one in every if one is not None and one.scale == 1.0]
    if len(summed) < len(parts):
        return None
    units = tuple(one.unit for one in summed)
    values = {"parts": [unit.name for unit in units], "n_classes": len(weights)}
    work = {"scores": WorkArray("int32_t", len(weights))}
    unit = writer.unit(__file__, "sum", {}, values, work, units)
    writer.units.append(unit)

    def evaluate(images: np.ndarray) -> np.ndarray:
        total: np.ndarray = sum(one.evaluate(images) for one in summed)  # type: ignore[assignment]
        return total

    return WholeScores(unit, 1.0, evaluate)
