"""Features in whole numbers in C: layer by layer, template by template, in memory that is shared.

One function computes every layer. What a template holds is unpacked once and slides over the
image, at two positions at a time where a cell has more than one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from visionshare.codegen.c_text import integer_type, table
from visionshare.codegen.c_writer import WorkArray
from visionshare.errors import InputError
from visionshare.generators.layers.integer_c.memory import (
    Image,
    deslant_source,
    parts,
    place_of,
    plan_memory,
)
from visionshare.generators.layers.integer_layer import WeightedIntegerLayer
from visionshare.generators.layers.integers.packing import PER_BYTE, packed, packed_bytes
from visionshare.generators.layers.integers.rounding import FORMATS

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.integer_c.scores import ScoreTable
    from visionshare.generators.layers.layer import LayerList

# Sizes in tables are of 16 bits.
_LARGEST_SIZE = 65535
# Values of a piece whose sums of two templates are worth being taken apart; products of a turn.
_SHORTEST = 4
_MOST_UNROLLED = 6
# Those of a turn where an instruction has two of them, of a template alone.
_OF_PAIRS = 4
# Beside smaller tables a second function of sums would be much of the flash.
_SMALL_TABLES = 3000
# Beside tiny ones, so would be pairs of positions and unrolled turns.
_TINY_TABLES = 1200
_DTYPES = {"uint8_t": "u1", "int16_t": "i2", "uint16_t": "u2", "int32_t": "i4"}
# The last part of a table's name, its numbers and their type in C.
_Table = tuple[str, np.ndarray, str]
# Ternary numbers have no number of bits.
_KINDS: dict[int | str, int] = {8: 8, 4: 4, 2: 2, "ternary": 1}


class _Pieces(NamedTuple):
    """Templates in rows, of which some have one sum of 16 bits, and parts of a row, each a row."""

    rows: int
    together: int
    parts: int
    length: int


class _Loop(NamedTuple):
    """How rows are summed: values of a turn; whether rows are in parts, and have a rest."""

    unroll: int
    split: bool
    rest: bool

    def shape(self, pieces: _Pieces, line: int) -> list[int]:
        """Return what stands in the structure of a shape, for the values of a row of the input."""
        turns, rest = divmod(pieces.length, self.unroll)
        # Vectors have a single row.
        gap = max(0, line - pieces.parts * pieces.length)
        shape = [pieces.rows, pieces.together, turns, gap, pieces.rows * pieces.length]
        return _checked([*shape, *[pieces.parts] * self.split, *[rest] * self.rest])


class _LayerInC(NamedTuple):
    """A layer in the template: what stands in its structure, in order."""

    shape: list[int]
    sizes: list[int]
    kind: int
    square: int
    edges: bool
    depthwise: bool
    residual: bool
    means: bool


class _Form(NamedTuple):
    """How the sums of all layers are computed."""

    # Of every layer, and of the scores' table if there is one.
    pieces: list[_Pieces]
    loop: _Loop
    # Two templates at a time; two positions at a time; one position at a time.
    paired: bool
    adjacent: bool
    single: bool

    @property
    def lanes(self) -> int:
        return 1 + self.paired

    def values(self) -> dict[str, Any]:
        """Return the values of the template that say it."""
        return {
            "paired": self.paired,
            "lanes": self.lanes,
            "sum_type": "uint32_t" if self.paired else "int32_t",
            "split": self.loop.split,
            "unroll": self.loop.unroll,
            "rest": self.loop.rest,
            "adjacent": self.adjacent,
            "single": self.single,
        }


def emit(family: LayerList, writer: Writer) -> Unit:
    """Return the unit of the features, as floats."""
    return _emitted(family, writer, None)


def emit_scores(family: LayerList, writer: Writer, scores: ScoreTable) -> Unit:
    """Return the unit of whole scores: ``static void name(image, work, scores)``."""
    return _emitted(family, writer, scores)


def _emitted(family: LayerList, writer: Writer, scores: ScoreTable | None) -> Unit:
    weighted, deslant, images = parts(family)
    from_floats = not writer.bytes
    direct = deslant is None and not from_floats and images[0].as_given
    # 1) how templates are summed, and where images lie in the memory that they share
    form = _form(weighted, scores, blob=writer.blob)
    counts = [_room(layer.weights[0].size, layer.bits) for layer in weighted]
    if scores is not None:
        counts.append(_room(form.pieces[-1].length, scores.bits))
    plan = plan_memory([image.size for image in images], counts, direct)
    # 2) the structures of layers, and their tables
    layers = [
        _layer(
            layer,
            images[i : i + 2],
            form.loop.shape(form.pieces[i], images[i].line),
            plan.of_layer(i),
        )
        for i, layer in enumerate(weighted)
    ]
    # Of a blob nothing but the shape is known when the program is compiled.
    biases = np.concatenate([layer.biases for layer in weighted])
    bias_type = "int32_t" if writer.blob else integer_type(biases)
    tables: list[_Table] = []
    for number, (layer, made) in enumerate(zip(weighted, layers, strict=True)):
        tables += _tables(number, layer, made, images[number], bias_type)
    kinds = {made.kind for made in layers}
    # 3) what the template is told
    values: dict[str, Any] = {
        **form.values(),
        **_values_of_layers(layers, images),
        "direct": direct,
        "copied": not direct and deslant is None,
        "from_floats": from_floats,
        "pixels": int(np.prod(family.image_shape_)),
        "place": "number" if deslant else place_of(images[0]),
        "deslant": deslant is not None,
        "deslant_c": deslant_source(deslant, images[0]),
        "n_features": family.n_features_,
        "bias_type": bias_type,
        "last": plan.images[-1],
        "per_byte": {_KINDS[bits]: n for bits, n in PER_BYTE.items()},
        "floats": scores is None,
    }
    # 4) features, or scores
    if scores is None:
        tables.append(("places", family.places_, integer_type(family.places_)))
    else:
        kinds.add(_KINDS[scores.bits])
        weights = _scoring(scores, form.pieces[-1], form.lanes)
        tables += [("scoring", weights, "uint8_t"), ("intercept", scores.intercept, "int32_t")]
        values["n_classes"] = len(scores.weights)
        values["scoring"] = _values_of_scores(scores, form, plan.numbers[-1], len(kinds) > 1)
    values["kinds"] = sorted(kinds, reverse=True)
    # 5) tables in the blob, or beside the function
    places = _places(tables, writer)
    values["blob"] = writer.blob
    values["parameter"] = f"const {writer.flash} uint8_t *tables, " if writer.blob else ""
    values["of_blob"] = lambda name, part: str(places[part]) if writer.blob else f"{name}_{part}"
    work = {"memory": WorkArray("int32_t", plan.words)}
    if deslant is not None and from_floats:
        work["image"] = WorkArray("uint8_t", values["pixels"])
    unit = writer.unit(__file__, "quantized", {}, values, work)
    constants = [
        table(f"{unit.name}_{part}", numbers, kind, f"{writer.flash} ")
        for part, numbers, kind in tables
        if not writer.blob
    ]
    # The image without slant lies where memory begins: the given one may stand there.
    in_place = deslant is not None and not from_floats and images[0].as_given
    source = "\n\n".join([*constants, unit.source])
    return replace(unit, source=source, in_place=in_place)


def _form(weighted: list[WeightedIntegerLayer], scores: ScoreTable | None, *, blob: bool) -> _Form:
    """Return how templates are summed: two at a time, where pieces are not too short."""
    templates = [layer.weights.reshape(len(layer.weights), layer.n_rows, -1) for layer in weighted]
    macs = [layer.macs() for layer in weighted]
    bits = [layer.bits for layer in weighted]
    if scores is not None:
        templates.append(scores.weights[:, None])
        macs.append(scores.weights.size)
        bits.append(scores.bits)
    # Weights of a blob may be as large as their bits allow.
    largest = templates
    if blob:
        largest = [
            np.full(weights.shape, FORMATS[number].high)
            for weights, number in zip(templates, bits, strict=True)
        ]
    pieces = [_pieces(weights) for weights in largest]
    # Two depthwise templates may see two channels.
    paired = not any(layer.of_one_channel for layer in weighted) and all(
        piece.length >= _SHORTEST or piece.parts == 1 for piece in pieces
    )
    if not paired:
        sizes = [weights.shape[1:] for weights in templates]
        pieces = [_Pieces(rows, rows, 1, length) for rows, length in sizes]
    table_bytes = sum(layer.nbytes for layer in weighted)
    is_tiny = table_bytes < _TINY_TABLES
    unroll = _OF_PAIRS
    if paired:
        unroll = _unroll(macs, pieces, 1 if is_tiny else _MOST_UNROLLED)
    loop = _Loop(
        unroll,
        split=any(piece.parts > 1 for piece in pieces[: len(weighted)]),
        rest=any(piece.length % unroll for piece in pieces),
    )
    # Whether a cell has several positions side by side.
    adjacent = not is_tiny and any(np.diff(layer.cell_edges).max() > 1 for layer in weighted)
    return _Form(pieces, loop, paired, adjacent, not adjacent or table_bytes >= _SMALL_TABLES)


def _values_of_layers(layers: list[_LayerInC], images: list[Image]) -> dict[str, Any]:
    return {
        "layers": layers,
        "edges": any(made.edges for made in layers),
        "depthwise": any(made.depthwise for made in layers),
        "residual": any(made.residual for made in layers),
        "means": any(made.means for made in layers),
        "squares": any(made.square for made in layers),
        "outputs": [[image.column, image.plane] for image in images[1:]],
        "margins": any(image.clear for image in images[1:]),
        "clear": images[0].clear,
    }


def _values_of_scores(
    scores: ScoreTable, form: _Form, numbers: int, several_kinds: bool
) -> dict[str, Any]:
    pieces = form.pieces[-1]
    shape = form.loop.shape(_Pieces(1, 1, 1, pieces.length), 0)
    if several_kinds:
        shape.append(_KINDS[scores.bits])
    return {
        "bytes": packed_bytes(pieces.length, scores.bits),
        "pieces": pieces.parts,
        "length": pieces.length,
        "shape": shape,
        "numbers": numbers,
    }


def _places(tables: list[_Table], writer: Writer) -> dict[str, int]:
    """Write tables into the writer's blob, where it makes one; return where each begins."""
    places: dict[str, int] = {}
    for part, numbers, kind in tables if writer.blob else ():
        writer.data += bytes(-len(writer.data) % 4)
        places[part] = len(writer.data)
        writer.data += np.asarray(numbers, f"<{_DTYPES[kind]}").tobytes()
    return places


def _room(n: int, bits: int | str) -> int:
    """Return how many numbers are unpacked: all of the last byte."""
    return packed_bytes(n, bits) * PER_BYTE[bits]


def _pieces(templates: np.ndarray) -> _Pieces:
    """Return the fewest pieces of templates whose sums of products with bytes are of 16 bits."""
    n, rows, length = templates.shape
    divided = [_Pieces(rows, together, 1, length) for together in range(rows, 0, -1)]
    of_row = [parts for parts in range(2, length + 1) if length % parts == 0]
    divided += [_Pieces(rows * parts, 1, parts, length // parts) for parts in of_row]
    for pieces in divided:
        of_rows = templates.reshape(n, pieces.rows, pieces.length)
        starts = np.arange(0, pieces.rows, pieces.together)
        sums = [
            np.add.reduceat(np.maximum(sign * of_rows, 0).sum(axis=2), starts, axis=1).max()
            for sign in (1, -1)
        ]
        if max(sums) * 255 < 2**15:
            break
    return pieces


def _unroll(macs: list[int], pieces: list[_Pieces], most: int) -> int:
    """Return how many products a loop has in each turn: few turns, and few products left."""

    def time(unroll: int) -> float:
        # A turn costs as much as a product, and one alone twice that.
        return sum(
            count / piece.length * (piece.length // unroll + 3 * (piece.length % unroll))
            for count, piece in zip(macs, pieces, strict=True)
        )

    return min(range(1, most + 1), key=time)


def _scoring(scores: ScoreTable, pieces: _Pieces, lanes: int) -> np.ndarray:
    """Return the packed weights: of so many classes together, piece by piece, each in bytes."""
    parts = scores.weights.reshape(len(scores.weights), pieces.parts, pieces.length)
    if len(parts) % lanes:
        # What stands beside the last class does not count.
        parts = np.concatenate([parts, parts[-1:]])
    tables = []
    for first in range(0, len(parts), lanes):
        together = parts[first : first + lanes].transpose(1, 0, 2).reshape(-1, pieces.length)
        tables += [packed(part, scores.bits) for part in together]
    return np.concatenate(tables)


def _layer(
    layer: WeightedIntegerLayer, around: list[Image], shape: list[int], places: list[int]
) -> _LayerInC:
    """Return what a layer's structure holds, for the images that it reads and writes."""
    before, after = around
    n = len(layer.weights)
    kind = _KINDS[layer.bits]
    each = packed_bytes(layer.weights[0].size, layer.bits)
    if not layer.slides:
        sizes = [n, each, 0, 0, 1, 1, 1, 0, 0, 0, *places]
        return _LayerInC(shape, _checked(sizes), kind, int(layer.square), *[False] * 4)
    down, across, _ = layer.out_shape
    edges = layer.cell_edges
    pool = int(edges[0, 1])
    regular = np.arange(max(down, across))[:, None] * pool + np.array([0, pool])
    same = np.array_equal(edges, np.concatenate([regular[:down], regular[:across]]))
    sizes = [n, each, before.column, before.line, down, across, pool]
    sizes += [after.begin, after.line, after.clear, *places]
    kinds = (layer.of_one_channel, layer.adds_input, layer.adds_cells)
    return _LayerInC(shape, _checked(sizes), kind, 0, not same, *kinds)


def _checked(sizes: list[int]) -> list[int]:
    if max(sizes) > _LARGEST_SIZE:
        raise InputError("family", f"{max(sizes)} values", f"layers of at most {_LARGEST_SIZE}")
    return sizes


def _tables(
    number: int, layer: WeightedIntegerLayer, made: _LayerInC, image: Image, bias_type: str
) -> list[_Table]:
    """Return the tables of a layer."""
    rows = [packed(weights, layer.bits) for weights in layer.weights]
    tables = [
        (f"weights{number}", np.concatenate(rows), "uint8_t"),
        (f"biases{number}", layer.biases, bias_type),
        (f"shifts{number}", layer.shifts, "uint8_t"),
    ]
    if made.edges:
        tables.append((f"edges{number}", layer.cell_edges, "uint16_t"))
    for name, values, kind in layer.source_tables(image.line, image.column, image.plane):
        if kind == "uint16_t":
            _checked(values.tolist())
        tables.append((f"{name}{number}", values, kind))
    return tables
