"""Monomials in ONNX: products of features of another family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.monomials.family import Monomials

_LARGEST_TABLE = 2**24


def emit(family: Monomials, graph: Graph) -> str:
    """Return the monomials of the features of their factors."""
    size = family.base_.n_features_
    longest = max(len(factors) for factors in family.factors_)
    if longest * len(family.factors_) > _LARGEST_TABLE:
        given = f"{len(family.factors_)} of up to {longest} factors"
        raise InputError("monomials", given, f"a table of at most {_LARGEST_TABLE}")
    base = graph.add(family.base_)
    if longest == 1:
        return graph.take(base, np.concatenate(family.factors_), size)
    # The feature after the last is the 1 that shorter monomials are filled up with.
    table = np.full((len(family.factors_), longest), size)
    for row, factors in zip(table, family.factors_, strict=True):
        row[: len(factors)] = factors
    if (table == size).any():
        one = graph.constant(np.float32(1))
        base = graph.node("Pad", base, graph.constant(np.array([0, 0, 0, 1])), one)
    values = graph.node("Gather", base, graph.constant(table.astype(np.int64)), axis=1)
    return graph.node("ReduceProd", values, graph.constant(np.array([2])), keepdims=0)
