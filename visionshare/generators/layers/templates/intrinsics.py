"""Steps of kernels over vectors of floats that stay in registers: the only file that knows LLVM.

Compilers turn loops into vectors, but keep the sums of several templates at several positions in
memory. These steps say what stays in registers. A lane of a vector computes the same however many
lanes there are: all processors that multiply and add in one step have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

__all__ = [
    "FEW_TOGETHER",
    "LANES",
    "MOST_ROWS",
    "MOST_VECTORS",
    "POSITIONS",
    "TEMPLATE_TILES",
    "VECTOR_TILES",
    "WIDEST",
    "gather_rows",
    "largest",
    "largest_in_cells",
    "respond",
    "respond_in_vectors",
    "split_columns",
]


def _many_registers() -> bool:
    """Return whether the processor has 32 registers of 16 floats."""
    try:
        return bool(binding.get_host_cpu_features().get("avx512f", False))
    except RuntimeError:
        return False


# Floats of a vector. One that a processor does not have is several of its own.
LANES = 16
# Templates, and positions, whose sums are in registers at once.
WIDEST, POSITIONS = (32, 8) if _many_registers() else (16, 6)
# Templates that are computed together where cells lie in vectors: four sums each.
FEW_TOGETHER = 4 if _many_registers() else 1
# Rows, and vectors of a row, that are summed in registers at once.
MOST_ROWS = 3
MOST_VECTORS = 3

_FLOAT = ir.FloatType()
_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)
_WIDTHS = [width for width in (4, 8, 16, 32) if width <= WIDEST]
#: Positions, or templates, and lanes of vectors of one step, for templates side by side.
TEMPLATE_TILES = [(n, width) for width in _WIDTHS for n in range(1, POSITIONS + 1)]
#: The same where images or positions lie side by side: fewer templates with more lanes.
VECTOR_TILES = [
    (n, width)
    for width in (16, 32, 64, 128)
    for n in (1, 2, 4, POSITIONS)
    if n * width <= POSITIONS * WIDEST
]


def _index(number: int) -> Any:
    return ir.Constant(_INT64, number)


class _Emitter:
    """Writes the instructions of a step."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.context = context
        self.builder = builder

    def data(self, kind: Any, array: Any, at: Any = None) -> Any:
        """Return the address of an array's first value, or of the one at an index."""
        start = make_array(kind)(self.context, self.builder, array).data
        return start if at is None else self.builder.gep(start, [at])

    def value_at(self, address: Any, at: Any) -> Any:
        """Return the number at a distance from an address."""
        return self.builder.load(self.builder.gep(address, [at]))

    def load(self, address: Any, at: Any, lanes: int) -> Any:
        """Return the vector of floats at a distance from an address."""
        pointer = self.builder.gep(address, [at])
        vector = self.builder.bitcast(pointer, ir.VectorType(_FLOAT, lanes).as_pointer())
        return self.builder.load(vector, align=4)

    def store(self, value: Any, address: Any, at: Any) -> None:
        """Write a vector of four-byte numbers at a distance from an address."""
        pointer = self.builder.gep(address, [at])
        vector = self.builder.bitcast(pointer, value.type.as_pointer())
        self.builder.store(value, vector, align=4)

    def repeated(self, value: Any, lanes: int) -> Any:
        """Return a vector of one number."""
        undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
        first = self.builder.insert_element(undefined, value, _index(0))
        order = ir.Constant(ir.VectorType(_INT32, lanes), [0] * lanes)
        return self.builder.shuffle_vector(first, undefined, order)

    def chosen_lanes(self, vector: Any, lanes: list[int]) -> Any:
        """Return some lanes of a vector."""
        undefined = ir.Constant(vector.type, ir.Undefined)
        order = ir.Constant(ir.VectorType(_INT32, len(lanes)), lanes)
        return self.builder.shuffle_vector(vector, undefined, order)

    def woven(self, vectors: list[Any]) -> Any:
        """Return the first lanes of vectors, then their second ones, and so on."""
        joined = vectors
        while len(joined) > 1:
            lanes = list(range(2 * joined[0].type.count))
            order = ir.Constant(ir.VectorType(_INT32, len(lanes)), lanes)
            pairs = zip(joined[::2], joined[1::2], strict=True)
            joined = [self.builder.shuffle_vector(a, b, order) for a, b in pairs]
        lanes_of_each = vectors[0].type.count
        n = len(vectors)
        lanes = [k * lanes_of_each + i for i in range(lanes_of_each) for k in range(n)]
        return self.chosen_lanes(joined[0], lanes)

    def add_product(self, a: Any, b: Any, total: Any) -> Any:
        """Return a · b + total, rounded once where the processor can."""
        kind = a.type
        signature = ir.FunctionType(kind, [kind] * 3)
        name = f"llvm.fmuladd.v{kind.count}f32"
        function = cgutils.get_or_insert_function(self.builder.module, signature, name)
        return self.builder.call(function, [a, b, total])

    def variables(self, values: list[Any]) -> list[Any]:
        """Return variables that begin with these values; the compiler puts them into registers."""
        places = []
        for value in values:
            place = cgutils.alloca_once(self.builder, value.type)
            self.builder.store(value, place)
            places.append(place)
        return places

    @contextmanager
    def range(self, start: Any, stop: Any) -> Iterator[Any]:
        """Loop over whole numbers."""
        loop = cgutils.for_range_slice(self.builder, start, stop, _index(1), _INT64)
        with loop as (number, _):
            yield number

    def chosen(self, value: Any, cases: Mapping[int, Callable[[], None]]) -> None:
        """Write the case of a number; there are no others."""
        end = self.builder.append_basic_block("chosen.end")
        switch = self.builder.switch(value, end)
        for number, write in cases.items():
            block = self.builder.append_basic_block(f"chosen.{number}")
            switch.add_case(_index(number), block)
            self.builder.position_at_end(block)
            write()
            self.builder.branch(end)
        self.builder.position_at_end(end)

    def chosen_pair(
        self,
        first: Any,
        second: Any,
        pairs: list[tuple[int, int]],
        write: Callable[[int, int], None],
    ) -> None:
        """Write the case of two numbers, each below 256."""
        number = self.builder.add(self.builder.mul(first, _index(256)), second)
        self.chosen(number, {256 * a + b: partial(write, a, b) for a, b in pairs})


def _signature(*arguments: Any) -> Any:
    """Return the signature of a step: whole numbers are int64."""
    kinds = [types.int64 if isinstance(a, types.Integer) else a for a in arguments]
    return types.void(*kinds)


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
            emit = _Emitter(context, builder)
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
                lanes = min(width, LANES)
                parts = [_index(v) for v in range(0, width, lanes)]
                totals = []
                for j in range(n):
                    at = builder.mul(begin_line, _index(j))
                    begun = [emit.load(begins, builder.add(at, v), lanes) for v in parts]
                    totals.append(emit.variables(begun))
                # A vector is read once for all scalars, a scalar once for all vectors.
                sources = [
                    builder.gep(scalars, [emit.value_at(starts, _index(j))]) for j in range(n)
                ]
                with emit.range(_index(0), rows) as y:
                    scalar_row = builder.mul(y, row)
                    vector_row = builder.mul(y, line)
                    with emit.range(_index(0), length) as t:
                        scalar = builder.add(scalar_row, t)
                        vector = builder.add(vector_row, builder.mul(t, step))
                        values = [emit.load(vectors, builder.add(vector, v), lanes) for v in parts]
                        for source, of_source in zip(sources, totals, strict=True):
                            factor = emit.repeated(emit.value_at(source, scalar), lanes)
                            for value, place in zip(values, of_source, strict=True):
                                total = emit.add_product(factor, value, builder.load(place))
                                builder.store(total, place)
                for j, of_source in enumerate(totals):
                    at = builder.mul(sums_line, _index(j))
                    for v, place in zip(parts, of_source, strict=True):
                        emit.store(builder.load(place), sums, builder.add(at, v))

            emit.chosen_pair(arguments[3], arguments[11], tiles, write)
            return context.get_dummy_value()

        return _signature(
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
    # width : {4, 8, 16, 32}
    #     At most ``WIDEST``.
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
        emit = _Emitter(context, builder)
        kinds = signature.args
        n = arguments[2]
        sums = emit.data(kinds[0], arguments[0], arguments[1])
        names = emit.data(kinds[4], arguments[4], arguments[5])
        out = emit.data(kinds[6], arguments[6], arguments[8])
        places = emit.data(kinds[7], arguments[7], arguments[8])

        def write(width: int, with_places: int) -> None:
            lanes = min(width, LANES)
            vectors = [_index(v) for v in range(0, width, lanes)]
            zero = emit.repeated(ir.Constant(_FLOAT, 0), lanes)
            nowhere = emit.repeated(ir.Constant(_INT32, -1), lanes)
            highest = emit.variables([zero for _ in vectors])
            where = emit.variables([nowhere for _ in vectors])
            with emit.range(_index(0), n) as p:
                here = emit.repeated(builder.trunc(emit.value_at(names, p), _INT32), lanes)
                for v, top, place in zip(vectors, highest, where, strict=True):
                    at = builder.add(builder.mul(p, _index(width)), v)
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

        cases = [(width, with_places) for width in _WIDTHS for with_places in (0, 1)]
        emit.chosen_pair(arguments[3], arguments[9], cases, write)
        return context.get_dummy_value()

    return _signature(sums, first, n, width, names, name, out, places, to, with_places), generate


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
        emit = _Emitter(context, builder)
        kinds = signature.args
        x = emit.data(kinds[0], arguments[0], arguments[1])
        planes = emit.data(kinds[4], arguments[4])

        def write(channels: int, _: int) -> None:
            pixels = emit.load(x, _index(0), 2 * LANES * channels)
            pixels = builder.fmul(pixels, emit.repeated(arguments[2], 2 * LANES * channels))
            for c in range(channels):
                for parity, begin in enumerate(arguments[5:7]):
                    first = parity * channels + c
                    lanes = list(range(first, 2 * LANES * channels, 2 * channels))
                    to = builder.add(begin, builder.mul(arguments[7], _index(c)))
                    emit.store(emit.chosen_lanes(pixels, lanes), planes, to)

        emit.chosen_pair(arguments[3], _index(0), [(1, 0), (3, 0)], write)
        return context.get_dummy_value()

    return _signature(x, at, unit, channels, planes, even, odd, plane), generate


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
    """Write the maxima with 0 of ``FEW_TOGETHER`` templates in ``LANES`` cells of 2 · 2 places."""
    # planes : ndarray of float32
    #     Of each channel a plane of the even columns, then one of the odd ones. The first cell is
    #     at ``at``, a line of pixels takes ``row`` floats.
    # q, channels : int
    #     Sides of templates.
    # taps, biases : ndarray of float32
    #     Those of the templates from ``first``, and ``bias``, on.
    # out : ndarray of float32
    #     The maxima, those of a cell one after the other.
    # places : ndarray of int32
    #     Where they are: the first position is called ``name``, the next one of its row
    #     ``channels`` more, the one below ``line`` more; -1 for nowhere.
    # with_places : int
    #     1 where places are written, otherwise 0.

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder)
        kinds = signature.args
        row, plane, q, channels = arguments[2:6]
        name, line = arguments[12:14]
        planes = emit.data(kinds[0], arguments[0], arguments[1])
        taps = emit.data(kinds[6], arguments[6], arguments[7])
        biases = emit.data(kinds[8], arguments[8], arguments[9])
        out = emit.data(kinds[10], arguments[10])
        places = emit.data(kinds[11], arguments[11])
        size = builder.mul(builder.mul(q, q), channels)
        sources = [builder.gep(taps, [builder.mul(size, _index(j))]) for j in range(FEW_TOGETHER)]
        # 1) four sums of each template: of the upper two positions of a cell, of the lower two
        totals = []
        for j in range(FEW_TOGETHER):
            begun = emit.repeated(emit.value_at(biases, _index(j)), LANES)
            totals.append(emit.variables([begun] * 4))
        with emit.range(_index(0), q) as y:
            upper = builder.mul(y, row)
            with emit.range(_index(0), q) as x:
                columns = []
                for column in (x, builder.add(x, _index(1))):
                    of_parity = builder.mul(builder.and_(column, _index(1)), plane)
                    columns.append(builder.add(of_parity, builder.lshr(column, _index(1))))
                tap = builder.mul(builder.add(builder.mul(y, q), x), channels)
                with emit.range(_index(0), channels) as c:
                    of_channel = builder.mul(builder.shl(c, _index(1)), plane)
                    above = builder.add(of_channel, upper)
                    begins = [above, builder.add(above, row)]
                    values = [
                        emit.load(planes, builder.add(begin, column), LANES)
                        for begin in begins
                        for column in columns
                    ]
                    for source, of_source in zip(sources, totals, strict=True):
                        weight = emit.value_at(source, builder.add(tap, c))
                        factor = emit.repeated(weight, LANES)
                        for value, place in zip(values, of_source, strict=True):
                            total = emit.add_product(factor, value, builder.load(place))
                            builder.store(total, place)
        # 2) the largest of the four
        zero = emit.repeated(ir.Constant(_FLOAT, 0), LANES)
        nowhere = emit.repeated(ir.Constant(_INT32, -1), LANES)
        numbers = ir.Constant(ir.VectorType(_INT32, LANES), list(range(0, 2 * LANES, 2)))

        def write(with_places: int, _: int) -> None:
            names = []
            if with_places:
                steps = emit.repeated(builder.trunc(channels, _INT32), LANES)
                cells = builder.mul(numbers, steps)
                for begin in (name, builder.add(name, line)):
                    for number in (begin, builder.add(begin, channels)):
                        here = emit.repeated(builder.trunc(number, _INT32), LANES)
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
            emit.store(emit.woven(tops), out, _index(0))
            if with_places:
                emit.store(emit.woven(wheres), places, _index(0))

        emit.chosen_pair(arguments[14], _index(0), [(0, 0), (1, 0)], write)
        return context.get_dummy_value()

    return _signature(
        planes, at, row, plane, q, channels, taps, first, biases, bias,
        out, places, name, line, with_places,
    ), generate  # fmt: skip


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
        emit = _Emitter(context, builder)
        kinds = signature.args
        line = arguments[1]
        n = arguments[4]
        out_line = arguments[9]
        source = emit.data(kinds[0], arguments[0])
        starts = emit.data(kinds[2], arguments[2])
        factors = emit.data(kinds[3], arguments[3])
        out = emit.data(kinds[7], arguments[7], arguments[8])

        def write(n_rows: int, n_vectors: int) -> None:
            tiles = [(r, _index(v * LANES)) for r in range(n_rows) for v in range(n_vectors)]
            lines = [builder.gep(source, [builder.mul(line, _index(r))]) for r in range(n_rows)]
            targets = [builder.gep(out, [builder.mul(out_line, _index(r))]) for r in range(n_rows)]
            zero = emit.repeated(ir.Constant(_FLOAT, 0), LANES)
            totals = emit.variables([zero for _ in tiles])
            with emit.range(_index(0), n) as e:
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

    return _signature(source, line, starts, factors, n, rows, vectors, out, to, out_line), generate
