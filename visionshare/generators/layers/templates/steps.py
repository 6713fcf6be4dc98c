"""Steps of kernels over vectors of floats: responses, maxima, and sums of rows.

Each is a function for kernels; see :mod:`visionshare.generators.layers.templates.vectors`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir
from numba.extending import intrinsic

from visionshare.generators.layers.templates.vectors import (
    FLOAT,
    INT32,
    LANES,
    POSITIONS,
    Emitter,
    index,
    signature_of,
    widths,
)

__all__ = ["gather_rows", "largest", "maxima_of_four", "respond", "scatter_rows"]


@intrinsic
def respond(
    typing_context: Any, pixels: Any, starts: Any, first: Any, n: Any, row: Any, rows: Any,
    length: Any, taps: Any, at: Any, width: Any, sums: Any, to: Any,
) -> Any:  # fmt: skip
    """Write the responses of ``width`` templates at ``n`` positions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit, kinds = Emitter(context, builder), signature.args
        pixels, starts, first, n, row, rows, length, taps, at, width, sums, to = arguments
        pixels = emit.data(kinds[0], pixels)
        starts = emit.data(kinds[1], starts, first)
        taps = emit.data(kinds[7], taps, at)
        sums = emit.data(kinds[10], sums, to)

        def write(width: int, n: int) -> None:
            lanes = min(width, LANES)
            vectors = [index(v) for v in range(0, width, lanes)]
            patches = [
                builder.gep(pixels, [builder.load(builder.gep(starts, [index(j)]))])
                for j in range(n)
            ]
            biases = [emit.load(taps, v, lanes) for v in vectors]
            totals = [emit.variables(biases) for _ in patches]
            with emit.range(index(0), rows) as y:
                line = builder.mul(y, row)
                tap_row = builder.add(builder.mul(y, length), index(1))
                with emit.range(index(0), length) as t:
                    pixel = builder.add(line, t)
                    tap = builder.mul(builder.add(tap_row, t), index(width))
                    weights = [emit.load(taps, builder.add(tap, v), lanes) for v in vectors]
                    for patch, sums_of_patch in zip(patches, totals, strict=True):
                        value = emit.repeated(emit.load(patch, pixel, 1), lanes)
                        for weight, place in zip(weights, sums_of_patch, strict=True):
                            total = builder.load(place)
                            builder.store(emit.add_product(value, weight, total), place)
            for j, sums_of_patch in enumerate(totals):
                for v, place in zip(vectors, sums_of_patch, strict=True):
                    offset = builder.add(v, index(j * width))
                    emit.store(builder.load(place), sums, offset)

        sizes = [(w, n) for w in widths() for n in range(1, POSITIONS + 1)]
        number = builder.add(builder.mul(width, index(POSITIONS + 1)), n)
        emit.chosen(number, {w * (POSITIONS + 1) + n: partial(write, w, n) for w, n in sizes})
        return context.get_dummy_value()

    return signature_of(
        pixels, starts, first, n, row, rows, length, taps, at, width, sums, to
    ), generate  # fmt: skip


@intrinsic
def largest(
    typing_context: Any, sums: Any, first: Any, n: Any, width: Any, names: Any, name: Any,
    out: Any, places: Any, to: Any, with_places: Any,
) -> Any:  # fmt: skip
    """Write the maxima with 0 over ``n`` positions of the responses of ``width`` templates."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit, kinds = Emitter(context, builder), signature.args
        sums, first, n, width, names, name, out, places, to, with_places = arguments
        sums = emit.data(kinds[0], sums, first)
        names = emit.data(kinds[4], names, name)
        out, places = emit.data(kinds[6], out, to), emit.data(kinds[7], places, to)
        place_type = context.get_data_type(kinds[7].dtype)

        def write(width: int, with_places: bool) -> None:
            lanes = min(width, LANES)
            vectors = [index(v) for v in range(0, width, lanes)]
            zero = emit.repeated(ir.Constant(FLOAT, 0), lanes)
            nowhere = emit.repeated(ir.Constant(INT32, -1), lanes)
            highest = emit.variables([zero for _ in vectors])
            where = emit.variables([nowhere for _ in vectors])
            with emit.range(index(0), n) as p:
                here = builder.trunc(builder.load(builder.gep(names, [p])), INT32)
                here = emit.repeated(here, lanes)
                for v, top, place in zip(vectors, highest, where, strict=True):
                    value = emit.load(sums, builder.add(builder.mul(p, index(width)), v), lanes)
                    before = builder.load(top)
                    above = builder.fcmp_ordered(">", value, before)
                    builder.store(builder.select(above, value, before), top)
                    if with_places:
                        builder.store(builder.select(above, here, builder.load(place)), place)
            for v, top, place in zip(vectors, highest, where, strict=True):
                emit.store(builder.load(top), out, v)
                if with_places:
                    value = builder.load(place)
                    if place_type.width < 32:
                        value = builder.trunc(value, ir.VectorType(place_type, lanes))
                    emit.store(value, places, v)

        with builder.if_else(builder.icmp_signed("!=", with_places, index(0))) as (then, other):
            with then:
                emit.chosen(width, {w: partial(write, w, True) for w in widths()})
            with other:
                emit.chosen(width, {w: partial(write, w, False) for w in widths()})
        return context.get_dummy_value()

    return signature_of(
        sums, first, n, width, names, name, out, places, to, with_places
    ), generate  # fmt: skip


@intrinsic
def gather_rows(
    typing_context: Any, source: Any, line: Any, starts: Any, factors: Any, first: Any, last: Any,
    rows: Any, vectors: Any, out: Any, to: Any, out_line: Any,
) -> Any:  # fmt: skip
    """Add Σ_e factor_e · (rows of ``source`` that begin at start_e) to rows of ``out``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit, kinds = Emitter(context, builder), signature.args
        source, line, starts, factors, first, last, rows, vectors, out, to, out_line = arguments
        source, starts = emit.data(kinds[0], source), emit.data(kinds[2], starts)
        factors, out = emit.data(kinds[3], factors), emit.data(kinds[8], out, to)

        def write(n_rows: int, n_vectors: int) -> None:
            tiles = [(r, index(v * LANES)) for r in range(n_rows) for v in range(n_vectors)]
            lines, targets = emit.lines(source, line, n_rows), emit.lines(out, out_line, n_rows)
            zero = emit.repeated(ir.Constant(FLOAT, 0), LANES)
            totals = emit.variables([zero for _ in tiles])
            with emit.range(first, last) as e:
                start = builder.load(builder.gep(starts, [e]))
                factor = emit.repeated(builder.load(builder.gep(factors, [e])), LANES)
                for (r, v), place in zip(tiles, totals, strict=True):
                    values = emit.load(lines[r], builder.add(start, v), LANES)
                    total = emit.add_product(factor, values, builder.load(place))
                    builder.store(total, place)
            for (r, v), place in zip(tiles, totals, strict=True):
                before = emit.load(targets[r], v, LANES)
                emit.store(builder.fadd(before, builder.load(place)), targets[r], v)

        emit.chosen_tile(rows, vectors, write)
        return context.get_dummy_value()

    return signature_of(
        source, line, starts, factors, first, last, rows, vectors, out, to, out_line
    ), generate  # fmt: skip


@intrinsic
def scatter_rows(
    typing_context: Any, source: Any, line: Any, starts: Any, factors: Any, first: Any, n: Any,
    rows: Any, vectors: Any, out: Any, tos: Any, out_line: Any,
) -> Any:  # fmt: skip
    """Add, for each entry e, factor_e · the rows of ``source`` from start_e to rows of ``out``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit, kinds = Emitter(context, builder), signature.args
        source, line, starts, factors, first, n, rows, vectors, out, tos, out_line = arguments
        source, starts = emit.data(kinds[0], source), emit.data(kinds[2], starts)
        factors = emit.data(kinds[3], factors, first)
        out, tos = emit.data(kinds[8], out), emit.data(kinds[9], tos)

        def write(n_rows: int, n_vectors: int) -> None:
            tiles = [(r, index(v * LANES)) for r in range(n_rows) for v in range(n_vectors)]
            lines, targets = emit.lines(source, line, n_rows), emit.lines(out, out_line, n_rows)
            with emit.range(index(0), n) as e:
                start, to = (builder.load(builder.gep(table, [e])) for table in (starts, tos))
                factor = emit.repeated(builder.load(builder.gep(factors, [e])), LANES)
                for r, v in tiles:
                    values, at = (
                        emit.load(lines[r], builder.add(start, v), LANES),
                        builder.add(to, v),
                    )
                    total = emit.add_product(factor, values, emit.load(targets[r], at, LANES))
                    emit.store(total, targets[r], at)

        emit.chosen_tile(rows, vectors, write)
        return context.get_dummy_value()

    return signature_of(
        source, line, starts, factors, first, n, rows, vectors, out, tos, out_line
    ), generate  # fmt: skip


@intrinsic
def maxima_of_four(
    typing_context: Any, pixels: Any, base: Any, offsets: Any, n_taps: Any, n_blocks: Any,
    taps: Any, at: Any, out: Any, places: Any, to: Any, with_places: Any,
) -> Any:  # fmt: skip
    """Write the maxima with 0 of the responses of four templates in ``LANES`` cells."""
    # The cells are neighbors, and so are the pixels that a tap meets at the same position of
    # each.

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit, kinds = Emitter(context, builder), signature.args
        pixels, base, offsets, n_taps, n_blocks, taps, at, out, places, to, with_places = arguments
        pixels, offsets = emit.data(kinds[0], pixels, base), emit.data(kinds[2], offsets)
        taps, out = emit.data(kinds[5], taps, at), emit.data(kinds[7], out, to)
        places, four = emit.data(kinds[8], places, to), range(4)

        def responses(block: Any) -> list[list[Any]]:
            """Return the responses of each template at each position of a block."""
            biases = [emit.repeated(emit.load(taps, index(m), 1), LANES) for m in four]
            totals = [emit.variables(biases) for _ in four]
            with emit.range(index(0), n_taps) as k:
                tap = builder.mul(builder.add(k, index(1)), index(4))
                number = builder.mul(builder.add(builder.mul(block, n_taps), k), index(4))
                weights = [
                    emit.repeated(emit.load(taps, builder.add(tap, index(m)), 1), LANES)
                    for m in four
                ]
                for j in four:
                    place = builder.gep(offsets, [builder.add(number, index(j))])
                    values = emit.load(pixels, builder.load(place), LANES)
                    for weight, total in zip(weights, totals[j], strict=True):
                        builder.store(emit.add_product(values, weight, builder.load(total)), total)
            return [[builder.load(totals[j][m]) for j in four] for m in four]

        def write(with_places: bool) -> None:
            zero = emit.repeated(ir.Constant(FLOAT, 0), LANES)
            highest = emit.variables([zero] * 4)
            where = emit.variables([emit.repeated(ir.Constant(INT32, -1), LANES)] * 4)
            with emit.range(index(0), n_blocks) as block:
                number = builder.trunc(builder.mul(block, index(4)), INT32)
                here = [
                    emit.repeated(builder.add(number, ir.Constant(INT32, j)), LANES) for j in four
                ]
                for m, values in enumerate(responses(block)):
                    for j in four:
                        before = builder.load(highest[m])
                        above = builder.fcmp_ordered(">", values[j], before)
                        builder.store(builder.select(above, values[j], before), highest[m])
                        if with_places:
                            place = builder.select(above, here[j], builder.load(where[m]))
                            builder.store(place, where[m])
            emit.store(emit.woven([builder.load(top) for top in highest]), out, index(0))
            if with_places:
                kind = ir.VectorType(ir.IntType(8), LANES)
                bytes_ = [builder.trunc(builder.load(place), kind) for place in where]
                emit.store(emit.woven(bytes_), places, index(0))

        with builder.if_else(builder.icmp_signed("!=", with_places, index(0))) as (then, other):
            with then:
                write(True)
            with other:
                write(False)
        return context.get_dummy_value()

    return signature_of(
        pixels, base, offsets, n_taps, n_blocks, taps, at, out, places, to, with_places
    ), generate  # fmt: skip
