"""Scores of compact classifiers as features, in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.quantization import quantized
from visionshare.errors import InputError
from visionshare.generators.sources.scores import LinearSource

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.sources.family import SourceClassifiers

__all__ = ["emit"]

_SOURCE = """    {1}(image, &work->inner.{1}, work->values);
    for (j = {3}; j < {3} + {4}; j++) {{
        {5}_SUM sum = 0;
        for (i = 0; i < {2}; i++) {{
            sum += ({5}_SUM)work->values[i] * ({5}_SUM){0}_weights{6}[(j - {3}) * {2} + i];
        }}
        features[{0}_places[j]] = (float)(sum{7} + ({5}_SUM){0}_intercept[j]);
    }}"""


def emit(family: SourceClassifiers, writer: Writer) -> Unit:
    """Return the unit of chosen scores, after the units of the classifiers that give them.

    Raises
    ------
    InputError
        If a source is no compact classifier.
    """
    used = np.unique(family.layout_[:, 0])
    sources = [family._sources[s] for s in used]
    units, lengths = [], [1]
    for source in sources:
        if not isinstance(source, LinearSource) or source.family.n_features_ == 0:
            raise InputError("sources", source.name, "compact classifiers only, with features")
        units.append(writer.add(source.family))
        lengths.append(source.family.n_features_)
    name, macro, begun = writer.name("sources"), writer.prefix.upper(), 0
    tables: dict[str, np.ndarray] = {}
    calls, places, intercepts, steps = [], [], [], [np.empty(0)]
    for number, (s, source, unit) in enumerate(zip(used, sources, units, strict=True)):
        mine = np.flatnonzero(family.layout_[:, 0] == s)
        scores = family.layout_[mine, 1]
        weights, step = source.weights[scores], ""
        if writer.bits is not None:
            weights, scale = quantized(weights, writer.bits)
            steps.append(scale)
            step = f" * {name}_steps[j]"
        tables[f"weights{number}"] = weights
        places.append(mine)
        intercepts.append(source.intercept[scores])
        calls.append(
            _SOURCE.format(name, unit.name, weights.shape[1], begun, len(mine), macro, number, step)
        )
        begun += len(mine)
    tables["places"] = np.concatenate([np.empty(0, np.int64), *places])
    tables["intercept"] = np.concatenate([np.empty(0, np.float32), *intercepts])
    if writer.bits is not None:
        tables["steps"] = np.concatenate(steps).astype(np.float32)
    words: dict[str, str | int] = {"calls": "\n".join(calls)}
    work = {"values": ("float", max(lengths))}
    return writer.unit(__file__, name, tables, words, work, tuple(units))
