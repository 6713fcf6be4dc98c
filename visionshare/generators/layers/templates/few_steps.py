"""Steps of kernels of few templates: cells lie side by side in vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from visionshare.generators.emitter import (
    FLOAT,
    INT32,
    LANES,
    Emitter,
    index,
    many_registers,
    signature_of,
)

# Templates that are computed together, four sums each, and cells in a vector.
FEW_TOGETHER, CELLS_TOGETHER = (4, LANES) if many_registers() else (2, LANES // 2)
# Sides and channels of templates whose taps are written one by one: a loop over channels takes as
# long as what it adds.
_UNROLLED = [(3, 1), (3, 3), (5, 1)]


@intrinsic
def split_columns(
    typing_context: Any,
    x: Any,
    at: Any,
    unit: Any,
    channels: Any,
    planes: Any,
    even: Any,
    odd: Any,
    plane: Any,
) -> Any:
    """Write 2 · ``LANES`` pixels of 1 or 3 channels, times ``unit``, into planes of columns."""
    # Those of a channel's even columns go to ``even``, its odd ones to ``odd``; the planes of the
    # next channel come ``plane`` floats later.

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder)
        kinds = signature.args
        x = emit.data(kinds[0], arguments[0], arguments[1])
        planes = emit.data(kinds[4], arguments[4])

        def write(channels: int, _: int) -> None:
            pixels = emit.load(x, index(0), 2 * LANES * channels)
            pixels = builder.fmul(pixels, emit.repeated(arguments[2], 2 * LANES * channels))
            for c in range(channels):
                for parity, begin in enumerate(arguments[5:7]):
                    first = parity * channels + c
                    lanes = list(range(first, 2 * LANES * channels, 2 * channels))
                    to = builder.add(begin, builder.mul(arguments[7], index(c)))
                    emit.store(emit.chosen_lanes(pixels, lanes), planes, to)

        emit.chosen_pair(arguments[3], index(0), [(1, 0), (3, 0)], write)
        return context.get_dummy_value()

    return signature_of(x, at, unit, channels, planes, even, odd, plane), generate


@intrinsic
def largest_in_cells(
    typing_context: Any,
    planes: Any,
    at: Any,
    row: Any,
    plane: Any,
    q: Any,
    channels: Any,
    taps: Any,
    first: Any,
    biases: Any,
    bias: Any,
    out: Any,
    places: Any,
    name: Any,
    line: Any,
    with_places: Any,
) -> Any:
    """Write the maxima with 0 of some templates in ``CELLS_TOGETHER`` cells of 2 · 2 places."""
    # planes : ndarray of float32
    #     Of each channel a plane of the even columns, then one of the odd ones. The first cell is
    #     at ``at``, a line of pixels takes ``row`` floats.
    # q, channels : int
    #     Sides of templates.
    # taps, biases : ndarray of float32
    #     Those of the templates from ``first``, and ``bias``, on.
    # out : ndarray of float32
    #     The maxima, cell by cell.
    # places : ndarray of int32
    #     Where they are: the first position is called ``name``, the next one of its row
    #     ``channels`` more, the one below ``line`` more; -1 for nowhere.
    # with_places : int
    #     1 where places are written, otherwise 0.

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder)
        kinds = signature.args
        row, plane, q, channels = arguments[2:6]
        name, line = arguments[12:14]
        planes = emit.data(kinds[0], arguments[0], arguments[1])
        taps = emit.data(kinds[6], arguments[6], arguments[7])
        biases = emit.data(kinds[8], arguments[8], arguments[9])
        out = emit.data(kinds[10], arguments[10])
        places = emit.data(kinds[11], arguments[11])
        size = builder.mul(builder.mul(q, q), channels)
        sources = [builder.gep(taps, [builder.mul(size, index(j))]) for j in range(FEW_TOGETHER)]
        # 1) four sums of each template: of the upper two positions of a cell, of the lower two
        totals = []
        for j in range(FEW_TOGETHER):
            begun = emit.repeated(emit.value_at(biases, index(j)), CELLS_TOGETHER)
            totals.append(emit.variables([begun] * 4))

        def add_products(y: Any, x: Any, c: Any, tap: Any) -> None:
            """Add the products of one tap of each template."""
            begins = [
                builder.add(builder.mul(builder.add(y, index(lower)), row), column_of(x, right))
                for lower in (0, 1)
                for right in (0, 1)
            ]
            of_channel = builder.mul(builder.shl(c, index(1)), plane)
            values = [
                emit.load(planes, builder.add(of_channel, begin), CELLS_TOGETHER)
                for begin in begins
            ]
            for source, of_source in zip(sources, totals, strict=True):
                factor = emit.repeated(emit.value_at(source, tap), CELLS_TOGETHER)
                for value, place in zip(values, of_source, strict=True):
                    builder.store(emit.add_product(factor, value, builder.load(place)), place)

        def column_of(x: Any, right: int) -> Any:
            """Return where a column of pixels is in its plane of even or odd columns."""
            column = builder.add(x, index(right))
            of_parity = builder.mul(builder.and_(column, index(1)), plane)
            return builder.add(of_parity, builder.lshr(column, index(1)))

        def add_all(side: int, n_channels: int) -> None:
            for tap, (y, x, c) in enumerate(np.ndindex(side, side, n_channels)):
                add_products(index(y), index(x), index(c), index(tap))

        def add_in_loops() -> None:
            with emit.range(index(0), q) as y, emit.range(index(0), q) as x:
                first_tap = builder.mul(builder.add(builder.mul(y, q), x), channels)
                with emit.range(index(0), channels) as c:
                    add_products(y, x, c, builder.add(first_tap, c))

        emit.chosen_pair(q, channels, _UNROLLED, add_all, add_in_loops)
        # 2) the largest of the four
        zero = emit.repeated(ir.Constant(FLOAT, 0), CELLS_TOGETHER)
        nowhere = emit.repeated(ir.Constant(INT32, -1), CELLS_TOGETHER)
        numbers = ir.Constant(
            ir.VectorType(INT32, CELLS_TOGETHER), list(range(0, 2 * CELLS_TOGETHER, 2))
        )

        def write(with_places: int, _: int) -> None:
            names = []
            if with_places:
                steps = emit.repeated(builder.trunc(channels, INT32), CELLS_TOGETHER)
                cells = builder.mul(numbers, steps)
                for begin in (name, builder.add(name, line)):
                    for number in (begin, builder.add(begin, channels)):
                        here = emit.repeated(builder.trunc(number, INT32), CELLS_TOGETHER)
                        names.append(builder.add(cells, here))
            tops = []
            wheres = []
            for of_source in totals:
                top = zero
                where = nowhere
                for k, place in enumerate(of_source):
                    value = builder.load(place)
                    above = builder.fcmp_ordered(">", value, top)
                    top = builder.select(above, value, top)
                    if with_places:
                        where = builder.select(above, names[k], where)
                tops.append(top)
                wheres.append(where)
            emit.store(emit.woven(tops), out, index(0))
            if with_places:
                emit.store(emit.woven(wheres), places, index(0))

        emit.chosen_pair(arguments[14], index(0), [(0, 0), (1, 0)], write)
        return context.get_dummy_value()

    return signature_of(
        planes, at, row, plane, q, channels, taps, first, biases, bias,
        out, places, name, line, with_places,
    ), generate  # fmt: skip
