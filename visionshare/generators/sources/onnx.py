"""Scores of compact classifiers as features, in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.sources.scores import LinearSource

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.sources.family import SourceClassifiers


def emit(family: SourceClassifiers, graph: Graph) -> str:
    """Return the chosen scores, summed in float64 as the library sums them."""
    parts = []
    for s in np.unique(family.layout_[:, 0]):
        source = family._sources[s]
        if not isinstance(source, LinearSource):
            raise InputError("sources", source.name, "compact classifiers only")
        features = np.flatnonzero(family.layout_[:, 0] == s)
        outputs = family.layout_[features, 1]
        weights = source.weights[outputs].T.astype(np.float64)
        intercept = source.intercept[outputs].astype(np.float64)
        values = graph.doubles(graph.add(source.family))
        scores = graph.node("MatMul", values, graph.constant(weights))
        scores = graph.node("Add", scores, graph.constant(intercept))
        parts.append((graph.floats(scores), features))
    return graph.concatenate(parts)
