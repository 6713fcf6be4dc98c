"""Anchors in ONNX: linear functions inside radii, whole or tapered, and Gaussians."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.anchors.family import KernelAnchors


def emit(family: KernelAnchors, graph: Graph) -> str:
    """Return chosen functions of the distances to anchors."""
    # Distances are ‖v‖² − 2 v·a + ‖a‖² in float64: one product of matrices for all anchors. Both
    # are moved to the anchors' mean first, so that far from 0 not all digits cancel.
    vectors = _vectors(family, graph)
    q = family.anchors_.shape[1]
    anchors = family.anchors_.astype(np.float64)
    mean = anchors.mean(axis=0)
    anchors -= mean
    moved = graph.node("Sub", graph.doubles(vectors), graph.constant(mean))
    axes = graph.constant(np.array([1]))
    squares = graph.node("ReduceSumSquare", moved, axes, keepdims=1)
    products = graph.node("MatMul", moved, graph.constant(-2 * anchors.T))
    distances = graph.node("Add", products, graph.constant((anchors**2).sum(axis=1)))
    distances = graph.node("Add", distances, squares)
    pair, part = np.divmod(family.ids_, family._width)
    limits = family._limits[pair]
    chosen = graph.take(distances, family.pairs_[pair], len(anchors))
    if family.kind == "gaussian":
        exponents = graph.node("Div", chosen, graph.constant(-2 * limits))
        return graph.floats(graph.node("Exp", exponents))
    if family.kind == "tapered":
        faded = graph.node("Mul", chosen, graph.constant(1 / limits))
        inside = graph.node("Sub", graph.constant(np.float64(1)), faded)
        inside = graph.floats(graph.node("Relu", inside))
    else:
        inside = graph.floats(graph.node("Less", chosen, graph.constant(limits)))
    # The constant is number q of [v, 1].
    if (part == q).any():
        one = graph.constant(np.float32(1))
        vectors = graph.node("Pad", vectors, graph.constant(np.array([0, 0, 0, 1])), one)
        q += 1
    return graph.node("Mul", graph.take(vectors, part, q), inside)


def _vectors(family: KernelAnchors, graph: Graph) -> str:
    """Return the scaled and projected inputs (n, q), float32."""
    indices = np.arange(len(family.input_scale_))
    inputs = graph.inputs(indices, family.input_offset_, family.input_scale_)
    if family.components_ is not None and family.mean_ is not None:
        inputs = graph.node("Sub", inputs, graph.constant(family.mean_.astype(np.float64)))
        projection = family.components_.T.astype(np.float64)
        inputs = graph.node("MatMul", inputs, graph.constant(projection))
    return graph.floats(inputs)
