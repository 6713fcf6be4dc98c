"""Steps of kernels over vectors of floats that stay in registers.

Compilers turn loops into vectors, but keep the sums of several templates at several positions in
memory. These steps say what stays in registers, for the processor at hand. What a lane of a vector
computes does not depend on how many lanes there are: all processors that multiply and
add in one step have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

__all__ = ["LANES", "POSITIONS", "WIDEST", "gather_rows", "largest", "respond", "scatter_rows"]


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
# Rows, and vectors of a row, that are summed in registers at once.
MOST_ROWS, MOST_VECTORS = 3, 3

_FLOAT, _INDEX = ir.FloatType(), ir.IntType(64)


class _Emitter:
    """Writes the instructions of a step."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.context, self.builder = context, builder

    def data(self, kind: Any, array: Any, at: Any = None) -> Any:
        """Return the address of an array's first value, or of the one at an index."""
        start = make_array(kind)(self.context, self.builder, array).data
        return start if at is None else self.builder.gep(start, [at])

    def load(self, address: Any, at: Any, lanes: int) -> Any:
        """Return the vector, or float, at a distance from the address of a float."""
        pointer = self.builder.gep(address, [at])
        if lanes == 1:
            return self.builder.load(pointer)
        vector = self.builder.bitcast(pointer, ir.VectorType(_FLOAT, lanes).as_pointer())
        return self.builder.load(vector, align=4)

    def store(self, value: Any, address: Any, at: Any) -> None:
        pointer = self.builder.gep(address, [at])
        align = value.type.element.width // 8 if hasattr(value.type.element, "width") else 4
        vector = self.builder.bitcast(pointer, value.type.as_pointer())
        self.builder.store(value, vector, align=align)

    def repeated(self, value: Any, lanes: int) -> Any:
        """Return a vector of one number."""
        vector = ir.VectorType(value.type, lanes)
        one = self.builder.insert_element(ir.Constant(vector, ir.Undefined), value, _index(0))
        return self.builder.shuffle_vector(
            one, ir.Constant(vector, ir.Undefined),
            ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes),
        )  # fmt: skip

    def add_product(self, a: Any, b: Any, c: Any) -> Any:
        """Return a · b + c, rounded once where the processor can."""
        kind, lanes = a.type, a.type.count
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(kind, [kind] * 3),
            f"llvm.fmuladd.v{lanes}f32",
        )
        return self.builder.call(function, [a, b, c])

    def variables(self, values: list[Any]) -> list[Any]:
        """Return variables that begin with these values; the compiler puts them into registers."""
        places = [cgutils.alloca_once(self.builder, value.type) for value in values]
        for place, value in zip(places, values, strict=True):
            self.builder.store(value, place)
        return places

    @contextmanager
    def range(self, start: Any, stop: Any) -> Iterator[Any]:
        """Loop over whole numbers."""
        with cgutils.for_range_slice(self.builder, start, stop, _index(1), _INDEX) as (i, _):
            yield i

    def chosen(self, value: Any, cases: dict[int, Callable[[], None]]) -> None:
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

    def lines(self, address: Any, line: Any, n: int) -> list[Any]:
        """Return the addresses of ``n`` rows, ``line`` floats apart."""
        return [self.builder.gep(address, [self.builder.mul(line, _index(r))]) for r in range(n)]

    def chosen_tile(self, rows: Any, vectors: Any, write: Callable[[int, int], None]) -> None:
        """Write the case of a number of rows and of vectors in them."""
        number = self.builder.add(self.builder.mul(rows, _index(MOST_VECTORS + 1)), vectors)
        sizes = [(r, v) for r in range(1, MOST_ROWS + 1) for v in range(1, MOST_VECTORS + 1)]
        cases = {r * (MOST_VECTORS + 1) + v: lambda r=r, v=v: write(r, v) for r, v in sizes}
        self.chosen(number, cases)


def _index(number: int) -> Any:
    return ir.Constant(_INDEX, number)


def _widths() -> list[int]:
    return [width for width in (4, 8, 16, 32) if width <= WIDEST]


def _signature(*arguments: Any) -> Any:
    """Return the signature of a step: whole numbers are int64."""
    kinds = [types.int64 if isinstance(a, types.Integer) else a for a in arguments]
    return types.void(*kinds)


@intrinsic
def respond(
    typing_context: Any, pixels: Any, starts: Any, first: Any, n: Any, row: Any, rows: Any,
    length: Any, taps: Any, at: Any, width: Any, sums: Any, to: Any,
) -> Any:  # fmt: skip
    """Write the responses of ``width`` templates at ``n`` positions.

    Parameters
    ----------
    pixels : ndarray of float32
        A padded image.
    starts : ndarray of int64
        Where the patch of each position begins in ``pixels``; those from ``first`` on are used.
    first, n : int
        At most ``POSITIONS`` positions.
    row : int
        Floats from a row of the image to the next.
    rows, length : int
        Rows of a template, and floats of a row.
    taps : ndarray of float32
        The biases of the templates, then tap after tap, ``width`` templates side by side.
    at : int
        Where they begin.
    width : {4, 8, 16, 32}
        At most ``WIDEST``.
    sums : ndarray of float32
        From ``to`` on, for each position, the responses of all templates.
    to : int
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit, kinds = _Emitter(context, builder), signature.args
        pixels, starts, first, n, row, rows, length, taps, at, width, sums, to = arguments
        pixels = emit.data(kinds[0], pixels)
        starts = emit.data(kinds[1], starts, first)
        taps = emit.data(kinds[7], taps, at)
        sums = emit.data(kinds[10], sums, to)

        def write(width: int, n: int) -> None:
            lanes = min(width, LANES)
            vectors = [_index(v) for v in range(0, width, lanes)]
            patches = [
                builder.gep(pixels, [builder.load(builder.gep(starts, [_index(j)]))])
                for j in range(n)
            ]
            biases = [emit.load(taps, v, lanes) for v in vectors]
            totals = [emit.variables(biases) for _ in patches]
            with emit.range(_index(0), rows) as y:
                line = builder.mul(y, row)
                tap_row = builder.add(builder.mul(y, length), _index(1))
                with emit.range(_index(0), length) as t:
                    pixel = builder.add(line, t)
                    tap = builder.mul(builder.add(tap_row, t), _index(width))
                    weights = [emit.load(taps, builder.add(tap, v), lanes) for v in vectors]
                    for patch, sums_of_patch in zip(patches, totals, strict=True):
                        value = emit.repeated(emit.load(patch, pixel, 1), lanes)
                        for weight, place in zip(weights, sums_of_patch, strict=True):
                            total = builder.load(place)
                            builder.store(emit.add_product(value, weight, total), place)
            for j, sums_of_patch in enumerate(totals):
                for v, place in zip(vectors, sums_of_patch, strict=True):
                    offset = builder.add(v, _index(j * width))
                    emit.store(builder.load(place), sums, offset)

        sizes = [(w, n) for w in _widths() for n in range(1, POSITIONS + 1)]
        number = builder.add(builder.mul(width, _index(POSITIONS + 1)), n)
        emit.chosen(
            number, {w * (POSITIONS + 1) + n: lambda w=w, n=n: write(w, n) for w, n in sizes}
        )
        return context.get_dummy_value()

    return _signature(
        pixels, starts, first, n, row, rows, length, taps, at, width, sums, to
    ), generate  # fmt: skip


@intrinsic
def largest(
    typing_context: Any, sums: Any, first: Any, n: Any, width: Any, names: Any, name: Any,
    out: Any, places: Any, to: Any, with_places: Any,
) -> Any:  # fmt: skip
    """Write the maxima with 0 over ``n`` positions of the responses of ``width`` templates.

    Parameters
    ----------
    sums : ndarray of float32
        As :func:`respond` writes them; those of the positions begin at ``first``.
    first, n : int
    width : {4, 8, 16, 32}
        At most ``WIDEST``.
    names : ndarray of int64
        What the positions are called, those of these from ``name`` on.
    name : int
    out : ndarray of float32
        The maxima from ``to`` on.
    places : ndarray of integers
        Names of the first positions that have the maxima, from ``to`` on; −1 where it is 0.
    to : int
    with_places : int
        Whether places are written.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit, kinds = _Emitter(context, builder), signature.args
        sums, first, n, width, names, name, out, places, to, with_places = arguments
        sums = emit.data(kinds[0], sums, first)
        names = emit.data(kinds[4], names, name)
        out, places = emit.data(kinds[6], out, to), emit.data(kinds[7], places, to)
        place_type = context.get_data_type(kinds[7].dtype)

        def write(width: int, with_places: bool) -> None:
            lanes = min(width, LANES)
            vectors = [_index(v) for v in range(0, width, lanes)]
            zero = emit.repeated(ir.Constant(_FLOAT, 0), lanes)
            nowhere = emit.repeated(ir.Constant(ir.IntType(32), -1), lanes)
            highest = emit.variables([zero for _ in vectors])
            where = emit.variables([nowhere for _ in vectors])
            with emit.range(_index(0), n) as p:
                here = builder.trunc(builder.load(builder.gep(names, [p])), ir.IntType(32))
                here = emit.repeated(here, lanes)
                for v, top, place in zip(vectors, highest, where, strict=True):
                    value = emit.load(sums, builder.add(builder.mul(p, _index(width)), v), lanes)
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

        with builder.if_else(builder.icmp_signed("!=", with_places, _index(0))) as (then, other):
            with then:
                emit.chosen(width, {w: lambda w=w: write(w, True) for w in _widths()})
            with other:
                emit.chosen(width, {w: lambda w=w: write(w, False) for w in _widths()})
        return context.get_dummy_value()

    return _signature(
        sums, first, n, width, names, name, out, places, to, with_places
    ), generate  # fmt: skip


@intrinsic
def gather_rows(
    typing_context: Any, source: Any, line: Any, starts: Any, factors: Any, first: Any, last: Any,
    rows: Any, vectors: Any, out: Any, to: Any, out_line: Any,
) -> Any:  # fmt: skip
    """Add Σ_e factor_e · (rows of ``source`` that begin at start_e) to rows of ``out``.

    Parameters
    ----------
    source : ndarray of float32
    line : int
        Floats from a row of ``source`` to the next.
    starts : ndarray of int64
        Where the rows of each entry begin.
    factors : ndarray of float32
    first, last : int
        The entries that are added: those from ``first`` on, without ``last``.
    rows : int
        Rows, at most ``MOST_ROWS``.
    vectors : int
        Vectors of ``LANES`` floats of a row, at most ``MOST_VECTORS``.
    out : ndarray of float32
        The rows begin at ``to``, ``out_line`` floats apart.
    to, out_line : int
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit, kinds = _Emitter(context, builder), signature.args
        source, line, starts, factors, first, last, rows, vectors, out, to, out_line = arguments
        source, starts = emit.data(kinds[0], source), emit.data(kinds[2], starts)
        factors, out = emit.data(kinds[3], factors), emit.data(kinds[8], out, to)

        def write(n_rows: int, n_vectors: int) -> None:
            tiles = [(r, _index(v * LANES)) for r in range(n_rows) for v in range(n_vectors)]
            lines, targets = emit.lines(source, line, n_rows), emit.lines(out, out_line, n_rows)
            zero = emit.repeated(ir.Constant(_FLOAT, 0), LANES)
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

    return _signature(
        source, line, starts, factors, first, last, rows, vectors, out, to, out_line
    ), generate  # fmt: skip


@intrinsic
def scatter_rows(
    typing_context: Any, source: Any, line: Any, starts: Any, factors: Any, first: Any, n: Any,
    rows: Any, vectors: Any, out: Any, tos: Any, out_line: Any,
) -> Any:  # fmt: skip
    """Add factor_e · (rows of ``source`` that begin at start_e) to rows of ``out`` for each entry.

    Parameters
    ----------
    source, line, starts
        As for :func:`gather_rows`.
    factors : ndarray of float32
        Those of the entries begin at ``first``.
    first, n : int
        Entries are ``n``.
    rows, vectors : int
        As for :func:`gather_rows`.
    out : ndarray of float32
        Rows of an entry are ``out_line`` floats apart.
    tos : ndarray of int64
        Where those of each entry begin.
    out_line : int
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit, kinds = _Emitter(context, builder), signature.args
        source, line, starts, factors, first, n, rows, vectors, out, tos, out_line = arguments
        source, starts = emit.data(kinds[0], source), emit.data(kinds[2], starts)
        factors = emit.data(kinds[3], factors, first)
        out, tos = emit.data(kinds[8], out), emit.data(kinds[9], tos)

        def write(n_rows: int, n_vectors: int) -> None:
            tiles = [(r, _index(v * LANES)) for r in range(n_rows) for v in range(n_vectors)]
            lines, targets = emit.lines(source, line, n_rows), emit.lines(out, out_line, n_rows)
            with emit.range(_index(0), n) as e:
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

    return _signature(
        source, line, starts, factors, first, n, rows, vectors, out, tos, out_line
    ), generate  # fmt: skip
