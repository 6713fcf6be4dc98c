"""Anchors in C: linear functions inside radii, whole or tapered, and Gaussians."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_inputs import input_tables
from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import quantize_rows

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.anchors.family import KernelAnchors

_LARGEST = float(np.finfo(np.float32).max)


def emit(family: KernelAnchors, writer: Writer) -> Unit:
    """Return the unit of chosen functions of the distances to anchors."""
    n_inputs, (n_anchors, length) = len(family.input_scale_), family.anchors_.shape
    scaling = input_tables(
        family.input_offset_, family.input_scale_, np.arange(n_inputs), writer.bytes
    )
    # All inputs are in use.
    del scaling["inputs"]
    tables = scaling | _projection(family, writer.bits) | _anchors(family, writer.bits)
    values = {
        "n_features": family.n_features_, "n_inputs": n_inputs, "n_anchors": n_anchors,
        "length": length, "kind": family.kind, "projected": family.components_ is not None,
    }  # fmt: skip
    work = {
        "vector": WorkArray(writer.sum_type, length),
        "squares": WorkArray(writer.sum_type, max(1, n_anchors)),
    }
    math = family.kind == "gaussian"
    return writer.unit(__file__, "anchors", tables, values, work, math=math)


def _projection(family: KernelAnchors, bits: int | None) -> dict[str, np.ndarray]:
    """Return the tables of the projection to principal components; none without one."""
    if family.components_ is None or family.mean_ is None:
        return {}
    tables = {"mean": family.mean_}
    components = family.components_
    if bits is not None:
        components, scales = quantize_rows(components, bits)
        tables["component_scales"] = scales.astype(np.float32)
    return tables | {"components": components.T}


def _anchors(family: KernelAnchors, bits: int | None) -> dict[str, np.ndarray]:
    """Return the tables of the anchors, and of each feature's anchor, limit and part."""
    tables = {}
    anchors = family.anchors_
    if bits is not None:
        anchors, scales = quantize_rows(anchors, bits)
        tables["anchor_scales"] = scales.astype(np.float32)
    # One row per number of the vector: the loop over anchors is contiguous.
    tables["anchors"] = anchors.T
    pair, part = np.divmod(family.ids_, family._width)
    limits = family._limits[pair]
    if family.kind != "linear":
        limits = 1 / (limits if family.kind == "tapered" else 2 * limits)
    tables["limits"] = np.minimum(limits, _LARGEST).astype(np.float32)
    tables["anchor"] = family.pairs_[pair]
    if family.kind != "gaussian":
        tables["part"] = part
    return tables
