"""Steps of kernels over vectors of floats that stay in registers.

Compilers turn loops into vectors, but keep the sums of several templates at several positions in
memory. These steps say what stays in registers. A lane of a vector computes the same however many
lanes there are: all processors that multiply and add in one step have the same bits.
"""

from __future__ import annotations

from typing import Any

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

__all__ = [
    "LANES",
    "MOST_ROWS",
    "MOST_VECTORS",
    "NARROW",
    "NARROW_POSITIONS",
    "POSITIONS",
    "TEMPLATE_TILES",
    "TRIPLE",
    "TRIPLE_POSITIONS",
    "VECTOR_TILES",
    "WIDEST",
    "gather_rows",
    "largest",
    "respond",
    "respond_in_vectors",
]


# Templates, and positions, whose sums are in registers at once.
WIDEST, POSITIONS = (32, 8) if many_registers() else (16, 6)
# Where 16 templates fill two registers, three hold those that would fill one and a half pairs.
TRIPLE, TRIPLE_POSITIONS = 24, 4
# Templates that fill half a register or one: fewer sums than eight would wait for each other.
NARROW, NARROW_POSITIONS = 8, 8
# Rows, and vectors of a row, that are summed in registers at once.
MOST_ROWS = 3
MOST_VECTORS = 3

# Templates side by side, and the most positions that are computed at once.
_MOST = {4: NARROW_POSITIONS, NARROW: NARROW_POSITIONS, 16: POSITIONS}
_MOST |= {32: POSITIONS} if WIDEST == 32 else {TRIPLE: TRIPLE_POSITIONS}
#: Positions, or templates, and lanes of vectors of one step, for templates side by side.
TEMPLATE_TILES = [(n, width) for width, most in _MOST.items() for n in range(1, most + 1)]
#: The same where images or positions lie side by side: fewer templates with more lanes.
VECTOR_TILES = [
    (n, width)
    for width in (16, 32, 64, 128)
    for n in (1, 2, 4, POSITIONS)
    if n * width <= POSITIONS * WIDEST
]


def _sums_of_products(tiles: list[tuple[int, int]]) -> Any:
    """Return a step that computes these numbers of scalars and lanes at once."""

    @intrinsic
    def respond(
        typing_context: Any,
        scalars: Any,
        starts: Any,
        first: Any,
        n: Any,
        row: Any,
        rows: Any,
        length: Any,
        vectors: Any,
        at: Any,
        line: Any,
        step: Any,
        width: Any,
        begins: Any,
        begin: Any,
        begin_line: Any,
        sums: Any,
        to: Any,
        sums_line: Any,
    ) -> Any:
        """Write ``n`` · ``width`` sums of products of templates and pixels."""
        # Sum (j, lane) begins with begins[begin + j · begin_line + lane], and adds, for y < rows
        # and t < length, scalars[starts[first + j] + y · row + t] · vectors[at + y · line +
        # t · step + lane]. It is written to sums[to + j · sums_line + lane].
        # Where templates lie side by side they are the vectors, and the scalars are the pixels of
        # n positions. Where images or positions do, pixels are the vectors, and the scalars are
        # the taps of n templates. A sum has the same bits either way.
        # (n, width): one of ``tiles``; a compiler takes long for many.

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            emit = Emitter(context, builder)
            kinds = signature.args
            row, rows, length = arguments[4:7]
            line, step = arguments[9:11]
            begin_line = arguments[14]
            sums_line = arguments[17]
            scalars = emit.data(kinds[0], arguments[0])
            starts = emit.data(kinds[1], arguments[1], arguments[2])
            vectors = emit.data(kinds[7], arguments[7], arguments[8])
            begins = emit.data(kinds[12], arguments[12], arguments[13])
            sums = emit.data(kinds[15], arguments[15], arguments[16])

            def write(n: int, width: int) -> None:
                lanes = 8 if width == TRIPLE else min(width, LANES)
                parts = [index(v) for v in range(0, width, lanes)]
                totals = []
                for j in range(n):
                    at = builder.mul(begin_line, index(j))
                    begun = [emit.load(begins, builder.add(at, v), lanes) for v in parts]
                    totals.append(emit.variables(begun))
                # A vector is read once for all scalars, a scalar once for all vectors.
                sources = [
                    builder.gep(scalars, [emit.value_at(starts, index(j))]) for j in range(n)
                ]
                with emit.range(index(0), rows) as y:
                    scalar_row = builder.mul(y, row)
                    vector_row = builder.mul(y, line)
                    with emit.range(index(0), length) as t:
                        scalar = builder.add(scalar_row, t)
                        vector = builder.add(vector_row, builder.mul(t, step))
                        values = [emit.load(vectors, builder.add(vector, v), lanes) for v in parts]
                        for source, of_source in zip(sources, totals, strict=True):
                            factor = emit.repeated(emit.value_at(source, scalar), lanes)
                            for value, place in zip(values, of_source, strict=True):
                                total = emit.add_product(factor, value, builder.load(place))
                                builder.store(total, place)
                for j, of_source in enumerate(totals):
                    at = builder.mul(sums_line, index(j))
                    for v, place in zip(parts, of_source, strict=True):
                        emit.store(builder.load(place), sums, builder.add(at, v))

            emit.chosen_pair(arguments[3], arguments[11], tiles, write)
            return context.get_dummy_value()

        return signature_of(
            scalars, starts, first, n, row, rows, length,
            vectors, at, line, step, width,
            begins, begin, begin_line, sums, to, sums_line,
        ), generate  # fmt: skip

    return respond


respond = _sums_of_products(TEMPLATE_TILES)
respond_in_vectors = _sums_of_products(VECTOR_TILES)


@intrinsic
def largest(
    typing_context: Any,
    sums: Any,
    first: Any,
    n: Any,
    width: Any,
    names: Any,
    name: Any,
    out: Any,
    places: Any,
    to: Any,
    with_places: Any,
) -> Any:
    """Write the maxima with 0 over ``n`` positions of the responses of ``width`` templates."""
    # sums : ndarray of float32
    #     As :func:`respond` writes them; those of the positions begin at ``first``.
    # first, n : int
    # width : {4, 8, 16, 24, 32}
    #     One of ``TEMPLATE_TILES``.
    # names : ndarray of int64
    #     What the positions are called, those of these from ``name`` on.
    # name : int
    # out : ndarray of float32
    #     The maxima from ``to`` on.
    # places : ndarray of int32
    #     Names of the first positions that have the maxima, from ``to`` on; −1 where it is 0.
    # to : int
    # with_places : int
    #     1 where places are written, otherwise 0.

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder)
        kinds = signature.args
        n = arguments[2]
        sums = emit.data(kinds[0], arguments[0], arguments[1])
        names = emit.data(kinds[4], arguments[4], arguments[5])
        out = emit.data(kinds[6], arguments[6], arguments[8])
        places = emit.data(kinds[7], arguments[7], arguments[8])

        def write(width: int, with_places: int) -> None:
            lanes = 8 if width == TRIPLE else min(width, LANES)
            vectors = [index(v) for v in range(0, width, lanes)]
            zero = emit.repeated(ir.Constant(FLOAT, 0), lanes)
            nowhere = emit.repeated(ir.Constant(INT32, -1), lanes)
            highest = emit.variables([zero for _ in vectors])
            where = emit.variables([nowhere for _ in vectors])
            with emit.range(index(0), n) as p:
                here = emit.repeated(builder.trunc(emit.value_at(names, p), INT32), lanes)
                for v, top, place in zip(vectors, highest, where, strict=True):
                    at = builder.add(builder.mul(p, index(width)), v)
                    value = emit.load(sums, at, lanes)
                    before = builder.load(top)
                    above = builder.fcmp_ordered(">", value, before)
                    builder.store(builder.select(above, value, before), top)
                    if with_places:
                        builder.store(builder.select(above, here, builder.load(place)), place)
            for v, top, place in zip(vectors, highest, where, strict=True):
                emit.store(builder.load(top), out, v)
                if with_places:
                    emit.store(builder.load(place), places, v)

        cases = [(width, with_places) for width in _MOST for with_places in (0, 1)]
        emit.chosen_pair(arguments[3], arguments[9], cases, write)
        return context.get_dummy_value()

    return signature_of(sums, first, n, width, names, name, out, places, to, with_places), generate


@intrinsic
def gather_rows(
    typing_context: Any,
    source: Any,
    line: Any,
    starts: Any,
    factors: Any,
    n: Any,
    rows: Any,
    vectors: Any,
    out: Any,
    to: Any,
    out_line: Any,
) -> Any:
    """Add Σ_e factor_e · (rows of ``source`` that begin at start_e) to rows of ``out``."""
    # source : ndarray of float32
    # line : int
    #     Floats from a row of ``source`` to the next.
    # starts : ndarray of int64
    #     Where the rows of each entry begin.
    # factors : ndarray of float32
    # n : int
    #     Number of entries.
    # rows : int
    #     Rows, at most ``MOST_ROWS``.
    # vectors : int
    #     Vectors of ``LANES`` floats of a row, at most ``MOST_VECTORS``.
    # out : ndarray of float32
    #     The rows begin at ``to``, ``out_line`` floats apart.
    # to, out_line : int

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = Emitter(context, builder)
        kinds = signature.args
        line = arguments[1]
        n = arguments[4]
        out_line = arguments[9]
        source = emit.data(kinds[0], arguments[0])
        starts = emit.data(kinds[2], arguments[2])
        factors = emit.data(kinds[3], arguments[3])
        out = emit.data(kinds[7], arguments[7], arguments[8])

        def write(n_rows: int, n_vectors: int) -> None:
            tiles = [(r, index(v * LANES)) for r in range(n_rows) for v in range(n_vectors)]
            lines = [builder.gep(source, [builder.mul(line, index(r))]) for r in range(n_rows)]
            targets = [builder.gep(out, [builder.mul(out_line, index(r))]) for r in range(n_rows)]
            zero = emit.repeated(ir.Constant(FLOAT, 0), LANES)
            totals = emit.variables([zero for _ in tiles])
            with emit.range(index(0), n) as e:
                start = emit.value_at(starts, e)
                factor = emit.repeated(emit.value_at(factors, e), LANES)
                for (r, v), place in zip(tiles, totals, strict=True):
                    values = emit.load(lines[r], builder.add(start, v), LANES)
                    total = emit.add_product(factor, values, builder.load(place))
                    builder.store(total, place)
            for (r, v), place in zip(tiles, totals, strict=True):
                before = emit.load(targets[r], v, LANES)
                emit.store(builder.fadd(before, builder.load(place)), targets[r], v)

        sizes = [(r, v) for r in range(1, MOST_ROWS + 1) for v in range(1, MOST_VECTORS + 1)]
        emit.chosen_pair(arguments[5], arguments[6], sizes, write)
        return context.get_dummy_value()

    return signature_of(
        source, line, starts, factors, n, rows, vectors, out, to, out_line
    ), generate
