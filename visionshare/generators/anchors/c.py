"""Anchors in C: linear functions inside radii, and Gaussians."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_inputs import input_tables
from visionshare.codegen.quantization import quantized

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.anchors.family import KernelAnchors

__all__ = ["emit"]

_LARGEST = float(np.finfo(np.float32).max)
_FEATURE = {
    "linear": (
        "work->squares[{0}_anchor[j]] < ({1}_SUM){0}_limits[j]\n"
        "            ? ({0}_part[j] < {2} ? (float)work->vector[{0}_part[j]] : 1.0f) : 0.0f"
    ),
    "gaussian": "expf(-(float)work->squares[{0}_anchor[j]] * {0}_limits[j])",
}
_PLAIN = "work->vector[i] = value;"
_PROJECTED = """value -= ({1}_SUM){0}_mean[i];
        for (j = 0; j < {2}; j++) {{
            work->vector[j] += value * ({1}_SUM){0}_components[i * {2} + j];
        }}"""
_ROUNDED = """
    for (j = 0; j < {2}; j++) {{
        work->vector[j] = (float)(work->vector[j]{3});
    }}"""


def emit(family: KernelAnchors, writer: Writer) -> Unit:
    """Return the unit of chosen functions of the distances to anchors."""
    p, q, macro = len(family.input_scale_), family.anchors_.shape[1], writer.prefix.upper()
    scaling = (family.input_offset_, family.input_scale_)
    tables = input_tables(*scaling, np.arange(p), writer.bytes)
    del tables["places"]
    name = writer.name("anchors")
    words: dict[str, str | int] = {
        "features": family.n_features_, "inputs": p, "length": q, "anchors": len(family.anchors_),
        "input": _PLAIN, "rounded": "", "anchor_step": "",
        "feature": _FEATURE[family.kind].format(name, macro, q),
    }  # fmt: skip
    if family.components_ is not None and family.mean_ is not None:
        components, step = family.components_, ""
        if writer.bits is not None:
            components, scale = quantized(components, writer.bits)
            tables["component_steps"] = scale.astype(np.float32)
            step = f" * {name}_component_steps[j]"
        tables |= {"mean": family.mean_, "components": components.T}
        words["input"] = _PROJECTED.format(name, macro, q)
        words["rounded"] = _ROUNDED.format(name, macro, q, step)
    _add_anchors(family, writer, name, tables, words)
    total = f"{macro}_SUM"
    work = {"vector": (total, q), "squares": (total, max(1, len(family.anchors_)))}
    math = family.kind == "gaussian"
    return writer.unit(__file__, name, tables, words, work, math=math)


def _add_anchors(
    family: KernelAnchors,
    writer: Writer,
    name: str,
    tables: dict[str, np.ndarray],
    words: dict[str, str | int],
) -> None:
    anchors = family.anchors_
    if writer.bits is not None:
        anchors, scale = quantized(anchors, writer.bits)
        tables["anchor_steps"] = scale.astype(np.float32)
        words["anchor_step"] = f" * {name}_anchor_steps[a]"
    # A number after the other: the loop over anchors is contiguous.
    tables["anchors"] = anchors.T
    pair, part = np.divmod(family.ids_, family._width)
    limits = family._limits[pair]
    if family.kind == "gaussian":
        limits = 1 / (2 * limits)
    tables["limits"] = np.minimum(limits, _LARGEST).astype(np.float32)
    tables["anchor"] = family.pairs_[pair]
    if family.kind == "linear":
        tables["part"] = part
