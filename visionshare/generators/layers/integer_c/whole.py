"""Scores of whole features by whole weights: no floating point from a pixel to a score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.whole_numbers import WholeScores
from visionshare.errors import InputError
from visionshare.generators.layers.integer_c.scores import score_table
from visionshare.generators.layers.integer_c.small import emit_scores
from visionshare.generators.layers.integer_c.vectors import emit_in_vectors, suits_vectors

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Writer
    from visionshare.generators.layers.layer import LayerList


def scores(
    family: LayerList, writer: Writer, weights: np.ndarray, intercept: np.ndarray
) -> WholeScores | None:
    """Return the unit of the classifier's scores."""
    # None unless weights are whole.
    table = score_table(family, weights, intercept)
    if table is None:
        return None
    if writer.bits is not None:
        accepted = "'none': these tables are of whole numbers"
        raise InputError("quantize", f"int{writer.bits}", accepted)

    def evaluate(images: np.ndarray) -> np.ndarray:
        features = family.transform(images).astype(np.int64)
        return np.asarray(features @ weights.astype(np.int64).T + table.intercept)

    emitted = emit_in_vectors if suits_vectors(family, writer) else emit_scores
    unit = emitted(family, writer, table)
    writer.units.append(unit)
    return WholeScores(unit, 1.0, evaluate)
