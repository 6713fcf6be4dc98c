"""Whole scores in C with vectors of bytes: for PCs, where tables may be large.

Numbers are stored as the vectors want them, four taps of sixteen templates together, and nothing
is unpacked. The processor that the program is compiled for decides: AVX-512 with VNNI, AVX2, dot
products of NEON, or plain C. All give the bits of the program of small cores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.codegen.c_text import table
from visionshare.codegen.c_writer import WorkArray
from visionshare.generators.quantized.layers import CellLayer, UnitLayer
from visionshare.generators.quantized.memory import Image, deslant_source, edges_of, parts

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.quantized.family import QuantizedLayers
    from visionshare.generators.quantized.scores import ScoreTable

__all__ = ["emit_in_vectors", "suits_vectors"]

# Templates of a vector, taps of a template in it, and vectors that are computed together.
_LANES, _TAPS, _MOST = 16, 4, 4
# Beyond the end of a row, four bytes are read together.
_SLACK = _TAPS
# Products with bytes of larger numbers do not fit into 16 bits in pairs.
_SMALL = 64


def suits_vectors(family: QuantizedLayers, writer: Writer) -> bool:
    """Return whether the layers have a program in vectors: of bytes, without squares."""
    squares = any(getattr(layer, "square", False) for layer in family.layers_)
    return writer.vectors and writer.bytes and not squares


def emit_in_vectors(family: QuantizedLayers, writer: Writer, scores: ScoreTable) -> Unit:
    """Return the unit of whole scores: ``static void name(image, work, scores)``."""
    weighted, deslant, images = parts(family)
    tables: list[tuple[str, np.ndarray, str]] = []
    layers = []
    for number, (layer, before, after) in enumerate(
        zip(weighted, images, images[1:], strict=False)
    ):
        layers.append(_layer(number, layer, before, after))
        tables += _tables(number, layer)
    features = images[-1].size
    weights = _in_vectors(scores.weights.reshape(len(scores.weights), 1, features))
    tables += [("scoring", weights, "int8_t"), ("intercept", scores.intercept, "int32_t")]
    numbers_of = [numbers.astype(np.int64) for _, numbers, kind in tables if kind == "int8_t"]
    largest = max(np.abs(numbers).max() for numbers in numbers_of)
    rows, cols, channels = images[0].shape
    values: dict[str, Any] = {
        "layers": layers, "most": _MOST, "small": bool(largest <= _SMALL),
        "clear": images[0].clear, "deslant": deslant is not None,
        "deslant_c": deslant_source(deslant, images[0]),
        "rows": rows, "values": cols * channels, "begin": images[0].begin, "line": images[0].line,
        "n_classes": len(scores.weights),
        "scoring": {
            "quarters": -(-features // _TAPS),
            "groups": _groups(len(scores.weights), -(-features // _TAPS)),
            "from": _memory(len(weighted)),
        },
    }  # fmt: skip
    work = {
        "even": WorkArray("uint8_t", max(image.size for image in images[0::2]) + _SLACK),
        "odd": WorkArray("uint8_t", max(image.size for image in images[1::2]) + _SLACK),
    }
    unit = writer.unit(str(__file__), "quantized", {}, values, work)
    constants = [table(f"{unit.name}_{part}", numbers, kind) for part, numbers, kind in tables]
    return replace(unit, source="\n\n".join([*constants, unit.source]))


def _memory(number: int) -> str:
    """Return which piece of memory holds the input of a layer."""
    return "odd" if number % 2 else "even"


def _layer(
    number: int, layer: CellLayer | UnitLayer, before: Image, after: Image
) -> dict[str, Any]:
    """Return what the template says of a layer."""
    n = len(layer.weights)
    rows, length = _spread(layer.weights).shape[1:]
    quarters = -(-length // _TAPS)
    shape = [rows, quarters, 0, 0, 1, 1]
    output = [0, 0, n]
    if isinstance(layer, CellLayer):
        down, across, _ = layer.out_shape
        shape = [rows, quarters, before.line, layer.in_shape[2], down, across]
        output = [after.begin, after.line, n]
    return {
        "number": number,
        "shape": shape,
        "output": output,
        "zeros": after.clear,
        "from": _memory(number),
        "to": _memory(number + 1),
        "groups": _groups(n, rows * quarters),
    }


def _groups(templates: int, quarters: int) -> list[dict[str, int]]:
    """Return the blocks of templates that are computed together, and where their numbers begin."""
    groups, begin = [], 0
    while begin < templates:
        blocks = min(_MOST, -(-(templates - begin) // _LANES))
        end = min(templates, begin + blocks * _LANES)
        weights = begin * quarters * _TAPS
        groups.append({"begin": begin, "end": end, "blocks": blocks, "weights": weights})
        begin = end
    return groups


def _spread(weights: np.ndarray) -> np.ndarray:
    """Return templates as rows of values, (n, rows, length)."""
    rows = weights.shape[1] if weights.ndim == 4 else 1
    return weights.reshape(len(weights), rows, -1)


def _in_vectors(templates: np.ndarray) -> np.ndarray:
    """Return the numbers of templates (n, rows, length) in the order of the program."""
    n, rows, length = templates.shape
    quarters, blocks = -(-length // _TAPS), -(-n // _LANES)
    padded = np.zeros((blocks * _LANES, rows, quarters * _TAPS), np.int8)
    padded[:n, :, :length] = templates
    parts_of = padded.reshape(blocks, _LANES, rows, quarters, _TAPS)
    groups = [parts_of[i : i + _MOST] for i in range(0, blocks, _MOST)]
    return np.concatenate([group.transpose(2, 3, 0, 1, 4).ravel() for group in groups])


def _tables(number: int, layer: CellLayer | UnitLayer) -> list[tuple[str, np.ndarray, str]]:
    """Return the last part of the name of each table, its numbers and their type."""
    shifts = layer.shifts.astype(np.int64)
    halves = np.where(shifts > 0, 1 << np.maximum(shifts - 1, 0), 0)
    edges = edges_of(layer) if isinstance(layer, CellLayer) else np.array([[0, 1], [0, 1]])
    return [
        (f"weights{number}", _in_vectors(_spread(layer.weights)), "int8_t"),
        (f"biases{number}", _filled(layer.biases), "int32_t"),
        (f"halves{number}", _filled(halves), "int32_t"),
        (f"shifts{number}", _filled(shifts), "int32_t"),
        (f"edges{number}", edges, "uint16_t"),
    ]


def _filled(values: np.ndarray) -> np.ndarray:
    """Return one value for each lane, those beyond the templates 0."""
    return np.concatenate([values, np.zeros(-len(values) % _LANES, np.asarray(values).dtype)])
