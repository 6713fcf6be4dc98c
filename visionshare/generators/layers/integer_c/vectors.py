"""Whole scores in C with vectors of bytes: for PCs, where tables may be large.

Numbers are stored as the vectors want them, four taps of sixteen templates together, and nothing
is unpacked. The processor that the program is compiled for decides: AVX-512 with VNNI, AVX2, dot
products of NEON, or plain C. All give the bits of the program of small cores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from visionshare.codegen.c_text import table
from visionshare.codegen.c_writer import WorkArray
from visionshare.generators.layers.integer_c.memory import Image, deslant_source, parts
from visionshare.generators.layers.integer_layer import WeightedIntegerLayer

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.integer_c.scores import ScoreTable
    from visionshare.generators.layers.layer import LayerList

# Templates of a vector, taps of a template in it, and vectors that are computed together.
_LANES = 16
_TAPS = 4
_MOST = 4
# So few templates share a vector with the same templates at neighboring positions.
_FEW = (4, 8)
# Bytes that are read together, also beyond the end of a row.
_SLACK = 16
# Vectors of tables that begin with a line of the cache cross none.
_ALIGNMENT = """#if defined(__GNUC__)
#define {0} __attribute__((aligned(64)))
#else
#define {0}
#endif"""
# Products with bytes of larger numbers do not fit into 16 bits in pairs.
_SMALL = 64


def suits_vectors(family: LayerList, writer: Writer) -> bool:
    """Return whether the layers have a program in vectors: of bytes, without squares."""
    layers: list[Any] = family.layers_
    suited = all(layer.in_vectors for layer in layers)
    return writer.vectors and writer.bytes and suited


def emit_in_vectors(family: LayerList, writer: Writer, scores: ScoreTable) -> Unit:
    """Return the unit of whole scores: ``static void name(image, work, scores)``."""
    weighted, deslant, images = parts(family)
    tables: list[tuple[str, np.ndarray, str]] = []
    layers = []
    for number, (layer, before, after) in enumerate(
        zip(weighted, images, images[1:], strict=False)
    ):
        layers.append(_layer(number, layer, before, after))
        tables += _tables(number, layer, layers[-1]["groups"])
    features = images[-1].size
    weights = scores.weights.reshape(len(scores.weights), 1, features)
    scoring = _groups(weights)
    tables += [
        ("scoring", _in_vectors(weights, scoring), "int8_t"),
        ("intercept", scores.intercept, "int32_t"),
    ]
    numbers_of = [numbers.astype(np.int64) for _, numbers, kind in tables if kind == "int8_t"]
    largest = max(np.abs(numbers).max() for numbers in numbers_of)
    rows, cols, channels = images[0].shape
    values: dict[str, Any] = {
        "layers": layers,
        "most": _MOST,
        "small": bool(largest <= _SMALL),
        "clear": images[0].clear,
        "deslant": deslant is not None,
        "deslant_c": deslant_source(deslant, images[0], copied=True),
        "near": any(group.near for layer in layers for group in layer["groups"]),
        "rows": rows,
        "values": cols * channels,
        "begin": images[0].begin,
        "line": images[0].line,
        "n_classes": len(scores.weights),
        "scoring": {
            "quarters": -(-features // _TAPS),
            "groups": scoring,
            "from": _memory(len(weighted)),
        },
    }
    work = {
        "even": WorkArray("uint8_t", max(image.size for image in images[0::2]) + _SLACK),
        "odd": WorkArray("uint8_t", max(image.size for image in images[1::2]) + _SLACK),
    }
    if deslant is not None:
        work["rows"] = WorkArray("uint8_t", rows * channels * (cols + 2 * rows + 1) + _SLACK)
    unit = writer.unit(str(__file__), "quantized", {}, values, work)
    aligned = f"{unit.name.upper()}_ALIGNED"
    constants = [_ALIGNMENT.format(aligned)]
    for part, numbers, kind in tables:
        constants.append(table(f"{unit.name}_{part}", numbers, f"{aligned} {kind}"))
    return replace(unit, source="\n\n".join([*constants, unit.source]))


def _memory(number: int) -> str:
    """Return which piece of memory holds the input of a layer."""
    return "odd" if number % 2 else "even"


def _layer(number: int, layer: WeightedIntegerLayer, before: Image, after: Image) -> dict[str, Any]:
    """Return what the template says of a layer."""
    n = len(layer.weights)
    templates = _spread(layer.weights)
    rows, length = templates.shape[1:]
    quarters = -(-length // _TAPS)
    shape = [rows, quarters, 0, 0, 1, 1]
    output = [0, 0, n]
    few = 0
    across = 1
    if layer.slides:
        down, across, _ = layer.out_shape
        shape = [rows, quarters, before.line, layer.in_shape[2], down, across]
        output = [after.begin, after.line, n]
        few = _few(layer)
    return {
        "number": number,
        "shape": shape,
        "output": output,
        "zeros": after.clear,
        "from": _memory(number),
        "to": _memory(number + 1),
        "groups": _groups(templates, few, across),
    }


class _VectorGroup(NamedTuple):
    """Templates that are computed together."""

    begin: int
    end: int
    lanes: int
    weights: int
    blocks: int
    near: int = 0
    together: int = 1


def _few(layer: WeightedIntegerLayer) -> int:
    """Return how many last templates of a layer share vectors with other positions."""
    # Cells must have two rows of two positions, and the bytes of a vector must lie within 16.
    few = len(layer.weights) % _LANES
    channels = layer.in_shape[2]
    across = layer.out_shape[1]
    edges = layer.cell_edges
    down = len(edges) - across
    first = np.concatenate([2 * np.arange(down), 2 * np.arange(across)])
    if few not in _FEW or not np.array_equal(edges, np.stack([first, first + 2], axis=1)):
        return 0
    positions = _LANES // few
    inside = (positions - 1) * channels + _TAPS <= _SLACK
    return few if inside and across % (positions // 2) == 0 else 0


def _groups(templates: np.ndarray, few: int = 0, across: int = 1) -> list[_VectorGroup]:
    """Return the templates (n, rows, length) in groups, the last few with other positions."""
    n, rows, length = templates.shape
    taps = rows * -(-length // _TAPS) * _TAPS
    groups: list[_VectorGroup] = []
    begin = lanes = 0
    while begin < n - few:
        blocks = min(_MOST, -(-(n - few - begin) // _LANES))
        end = min(n - few, begin + blocks * _LANES)
        groups.append(_VectorGroup(begin, end, lanes, lanes * taps, blocks))
        begin = end
        lanes = lanes + blocks * _LANES
    if few:
        vectors = across * few * 2 // _LANES
        together = 1 if vectors % 2 else 2
        groups.append(_VectorGroup(begin, n, lanes, lanes * taps, 1, few, together))
    return groups


def _spread(weights: np.ndarray) -> np.ndarray:
    """Return templates as rows of values, (n, rows, length)."""
    rows = weights.shape[1] if weights.ndim == 4 else 1
    return weights.reshape(len(weights), rows, -1)


def _in_lanes(values: np.ndarray, group: _VectorGroup) -> np.ndarray:
    """Return what belongs to a group's templates for each lane: again and again, or then zeros."""
    chosen = values[group.begin : group.end]
    if group.near:
        return np.concatenate([chosen] * (_LANES // group.near))
    missing = group.blocks * _LANES - len(chosen)
    return np.concatenate([chosen, np.zeros((missing, *values.shape[1:]), values.dtype)])


def _in_vectors(templates: np.ndarray, groups: list[_VectorGroup]) -> np.ndarray:
    """Return the numbers of templates (n, rows, length) in the order of the program."""
    n, rows, length = templates.shape
    quarters = -(-length // _TAPS)
    padded = np.zeros((n, rows, quarters * _TAPS), np.int8)
    padded[:, :, :length] = templates
    parts_of = [
        _in_lanes(padded, group).reshape(group.blocks, _LANES, rows, quarters, _TAPS)
        for group in groups
    ]
    return np.concatenate([part.transpose(2, 3, 0, 1, 4).ravel() for part in parts_of])


def _tables(
    number: int, layer: WeightedIntegerLayer, groups: list[_VectorGroup]
) -> list[tuple[str, np.ndarray, str]]:
    """Return the last part of the name of each table, its numbers and their type."""
    shifts = layer.shifts.astype(np.int64)
    halves = np.where(shifts > 0, 1 << np.maximum(shifts - 1, 0), 0)
    edges = layer.cell_edges
    found = [
        (f"weights{number}", _in_vectors(_spread(layer.weights), groups), "int8_t"),
        (f"edges{number}", edges, "uint16_t"),
    ]
    for name, values in (("biases", layer.biases), ("halves", halves), ("shifts", shifts)):
        lanes = np.concatenate([_in_lanes(np.asarray(values), group) for group in groups])
        found.append((f"{name}{number}", lanes, "int32_t"))
    if groups[-1].near:
        position = np.arange(_LANES) // groups[-1].near
        tap = np.arange(_TAPS)
        places = (position * layer.in_shape[2])[:, None] + tap
        found.append((f"places{number}", places.ravel(), "uint8_t"))
    return found
