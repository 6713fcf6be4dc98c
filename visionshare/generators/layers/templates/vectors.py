"""Steps of kernels over vectors of floats that stay in registers.

Compilers turn loops into vectors, but keep the sums of several templates at several positions in
memory. These steps say what stays in registers, for the processor at hand. What a lane of a vector
computes does not depend on how many lanes there are: all processors that multiply and
add in one step have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array

__all__ = [
    "FLOAT",
    "INT32",
    "LANES",
    "MOST_ROWS",
    "MOST_VECTORS",
    "POSITIONS",
    "WIDEST",
    "Emitter",
    "index",
    "signature_of",
    "widths",
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
# Rows, and vectors of a row, that are summed in registers at once.
MOST_ROWS, MOST_VECTORS = 3, 3

FLOAT, INT32, _INDEX = ir.FloatType(), ir.IntType(32), ir.IntType(64)


class Emitter:
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
        vector = self.builder.bitcast(pointer, ir.VectorType(FLOAT, lanes).as_pointer())
        return self.builder.load(vector, align=4)

    def store(self, value: Any, address: Any, at: Any) -> None:
        pointer = self.builder.gep(address, [at])
        align = value.type.element.width // 8 if hasattr(value.type.element, "width") else 4
        vector = self.builder.bitcast(pointer, value.type.as_pointer())
        self.builder.store(value, vector, align=align)

    def repeated(self, value: Any, lanes: int) -> Any:
        """Return a vector of one number."""
        vector = ir.VectorType(value.type, lanes)
        one = self.builder.insert_element(ir.Constant(vector, ir.Undefined), value, index(0))
        return self.builder.shuffle_vector(
            one, ir.Constant(vector, ir.Undefined),
            ir.Constant(ir.VectorType(INT32, lanes), [0] * lanes),
        )  # fmt: skip

    def woven(self, vectors: list[Any]) -> Any:
        """Return one vector: the first values of four vectors, their second values, and so on."""
        lanes = vectors[0].type.count
        low, high = (
            self._shuffled(a, b, list(range(2 * lanes))) for a, b in (vectors[:2], vectors[2:])
        )
        order = [lane + v * lanes for lane in range(lanes) for v in range(4)]
        return self._shuffled(low, high, order)

    def _shuffled(self, a: Any, b: Any, order: list[int]) -> Any:
        mask = ir.Constant(ir.VectorType(INT32, len(order)), order)
        return self.builder.shuffle_vector(a, b, mask)

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
        with cgutils.for_range_slice(self.builder, start, stop, index(1), _INDEX) as (i, _):
            yield i

    def chosen(self, value: Any, cases: Mapping[int, Callable[[], None]]) -> None:
        """Write the case of a number; there are no others."""
        end = self.builder.append_basic_block("chosen.end")
        switch = self.builder.switch(value, end)
        for number, write in cases.items():
            block = self.builder.append_basic_block(f"chosen.{number}")
            switch.add_case(index(number), block)
            self.builder.position_at_end(block)
            write()
            self.builder.branch(end)
        self.builder.position_at_end(end)

    def lines(self, address: Any, line: Any, n: int) -> list[Any]:
        """Return the addresses of ``n`` rows, ``line`` floats apart."""
        return [self.builder.gep(address, [self.builder.mul(line, index(r))]) for r in range(n)]

    def chosen_tile(self, rows: Any, vectors: Any, write: Callable[[int, int], None]) -> None:
        """Write the case of a number of rows and of vectors in them."""
        number = self.builder.add(self.builder.mul(rows, index(MOST_VECTORS + 1)), vectors)
        sizes = [(r, v) for r in range(1, MOST_ROWS + 1) for v in range(1, MOST_VECTORS + 1)]
        cases = {r * (MOST_VECTORS + 1) + v: partial(write, r, v) for r, v in sizes}
        self.chosen(number, cases)


def index(number: int) -> Any:
    return ir.Constant(_INDEX, number)


def widths() -> list[int]:
    return [width for width in (4, 8, 16, 32) if width <= WIDEST]


def signature_of(*arguments: Any) -> Any:
    """Return the signature of a step: whole numbers are int64."""
    kinds = [types.int64 if isinstance(a, types.Integer) else a for a in arguments]
    return types.void(*kinds)
