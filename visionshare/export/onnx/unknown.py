"""The rule for pictures of no class as nodes of an ONNX graph."""

from __future__ import annotations

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.classifier.unknown import FAINT, LARGEST, LEVELS, few_measures, view_matrix
from visionshare.codegen.onnx_graph import Graph


def add_known(
    classifier: CompactClassifier, graph: Graph, features: str, scaled: str, best: str
) -> str:
    """Add the output ``known`` (n,), and return which images are refused."""
    rule = classifier.unknown
    assert rule is not None

    def constant(values: object) -> str:
        return graph.constant(np.asarray(values, np.float32))

    def reduced(operator: str, values: str, *axes: int, keep: int = 0) -> str:
        chosen = graph.constant(np.array(axes, np.int64))
        return graph.node(operator, values, chosen, keepdims=keep)

    # 1) The scores: energy, largest probability, and the two largest scores.
    two = graph.values_of_top(scaled, 2)
    first = graph.take(two, [0], 2)
    largest = reduced("ReduceMax", "probabilities", 1, keep=1)
    energy = graph.node("Sub", first, graph.node("Log", largest))
    # 2) The view, the contrast and the slopes of gray values.
    gray = reduced("ReduceMean", graph.raster(), 1)
    rows, columns = classifier.image_shape[:2]
    seen = graph.node("MatMul", constant(view_matrix(rows)), gray)
    seen = graph.node("MatMul", seen, constant(view_matrix(columns).T))
    view = graph.node("Reshape", seen, graph.constant(np.array([0, -1])))
    away = graph.node("Sub", gray, reduced("ReduceMean", gray, 1, 2, keep=1))
    square = reduced("ReduceMean", graph.node("Mul", away, away), 1, 2, keep=1)
    contrasts = [graph.node("Sqrt", square)]
    for axis, side in ((1, rows), (2, columns)):
        later = graph.take(gray, np.arange(1, side), side, axis)
        earlier = graph.take(gray, np.arange(side - 1), side, axis)
        slope = graph.node("Abs", graph.node("Sub", later, earlier))
        total = reduced("ReduceSum", slope, 1, 2, keep=1)
        contrasts.append(graph.node("Div", total, constant(rows * columns)))
    contrast = graph.node("Concat", *contrasts, axis=1)
    contrast = graph.node("Reshape", contrast, graph.constant(np.array([0, -1])))
    faint = graph.node("Log", graph.node("Add", contrast, constant(FAINT)))

    def distance(away: str) -> str:
        total = reduced("ReduceSum", graph.node("Mul", away, away), 1, keep=1)
        return graph.node("Log", graph.node("Add", total, constant(1)))

    # 3) The measures, and the lowest of the sums.
    appearance = graph.node("Concat", energy, largest, two, view, faint, contrast, axis=1)
    n, n_seen = len(rule.center), len(rule.whitening)
    standard = graph.node("Sub", appearance, constant(rule.center))
    standard = graph.node("Div", standard, constant(rule.scale))
    bounded = graph.node("Clip", standard, constant(-LARGEST), constant(LARGEST))
    of_class = graph.node("Gather", constant(rule.means), best, axis=0)
    away = graph.node("Sub", graph.take(appearance, np.arange(n_seen), n), of_class)
    white = graph.node("MatMul", away, constant(rule.whitening.T))
    few = graph.take(standard, few_measures(), n)
    squares = graph.node("Mul", bounded, bounded)
    measured = [bounded, squares, distance(white), few]
    if rule.directions is not None:
        of_class = graph.node("Gather", constant(rule.feature_means), best, axis=0)
        found = graph.node("MatMul", features, constant(rule.directions.T))
        measured.append(distance(graph.node("Sub", found, of_class)))
    measures = graph.node("Concat", *measured, axis=1)
    sums = graph.node("MatMul", measures, constant(rule.weights[:, :-1].T))
    sums = graph.node("Add", sums, constant(rule.weights[:, -1]))
    offset = graph.node("Gather", constant(rule.offsets), best, axis=0)
    left = graph.node("Sub", reduced("ReduceMin", sums, 1), offset)
    # 4) The share of known pictures: levels that rise between quantiles, and a tail below.
    low, high = rule.quantiles[0], rule.quantiles[-2]
    column = graph.node("Unsqueeze", left, graph.constant(np.array([1])))
    above = graph.node("Sub", column, constant(rule.quantiles[:-1]))
    steps = np.maximum(np.diff(rule.quantiles), 1e-12)
    parts = graph.node("Clip", graph.node("Div", above, constant(steps)), constant(0), constant(1))
    risen = graph.node("MatMul", parts, constant(np.diff(LEVELS)[:, None]))
    risen = graph.node("Squeeze", risen, graph.constant(np.array([1])))
    below = graph.node("Min", graph.node("Sub", left, constant(low)), constant(0))
    tail = graph.node("Exp", graph.node("Div", below, constant(max(float(high - low), 1e-6))))
    tail = graph.node("Mul", tail, constant(LEVELS[0]))
    graph.node("Add", tail, risen, name="known")
    return graph.node("Less", "known", constant(rule.reject))
