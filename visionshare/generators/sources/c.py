"""Scores of compact classifiers as features, in C."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import quantize_rows
from visionshare.errors import InputError
from visionshare.generators.sources.scores import LinearSource

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.sources.family import SourceClassifiers


class _Source(NamedTuple):
    """A source in the template: its unit, and which rows of the tables are its scores."""

    unit: str
    n_features: int
    begin: int
    end: int


def emit(family: SourceClassifiers, writer: Writer) -> Unit:
    """Return the unit of chosen scores, after the units of the classifiers that give them."""
    numbers = np.unique(family.layout_[:, 0])
    classifiers = [_linear(family._sources[s]) for s in numbers]
    units = tuple(writer.add(classifier.family) for classifier in classifiers)
    tables: dict[str, np.ndarray] = {}
    sources: list[_Source] = []
    features = []
    intercepts = []
    scales = []
    begin = 0
    for s, classifier, unit in zip(numbers, classifiers, units, strict=True):
        chosen = np.flatnonzero(family.layout_[:, 0] == s)
        scores = family.layout_[chosen, 1]
        weights = classifier.weights[scores]
        if writer.bits is not None:
            weights, weight_scales = quantize_rows(weights, writer.bits)
            scales.append(weight_scales)
        tables[f"weights{len(sources)}"] = weights
        features.append(chosen)
        intercepts.append(classifier.intercept[scores])
        sources.append(_Source(unit.name, weights.shape[1], begin, begin + len(chosen)))
        begin += len(chosen)
    tables["features"] = np.concatenate([np.empty(0, np.int64), *features])
    tables["intercept"] = np.concatenate([np.empty(0, np.float32), *intercepts])
    if writer.bits is not None:
        tables["weight_scales"] = np.concatenate([np.empty(0), *scales]).astype(np.float32)
    length = max((source.n_features for source in sources), default=1)
    work = {"values": WorkArray("float", length)}
    return writer.unit(__file__, "sources", tables, {"sources": sources}, work, units)


def _linear(source: object) -> LinearSource:
    """Return a source whose scores are weights times features."""
    if not isinstance(source, LinearSource) or source.family.n_features_ == 0:
        name = getattr(source, "name", source)
        raise InputError("sources", name, "compact classifiers only, with features")
    return source
