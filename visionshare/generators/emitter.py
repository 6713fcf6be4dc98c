"""What kernels say in LLVM itself: the only file that knows numba's code generator."""

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


def many_registers() -> bool:
    """Return whether the processor has 32 registers of 16 floats."""
    try:
        return bool(binding.get_host_cpu_features().get("avx512f", False))
    except RuntimeError:
        return False


# Floats of a vector. One that a processor does not have is several of its own.
LANES = 16
FLOAT = ir.FloatType()
INT32 = ir.IntType(32)
INT64 = ir.IntType(64)


def index(number: int) -> Any:
    """Return a whole number as a constant."""
    return ir.Constant(INT64, number)


class Emitter:
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
        vector = self.builder.bitcast(pointer, ir.VectorType(FLOAT, lanes).as_pointer())
        return self.builder.load(vector, align=4)

    def store(self, value: Any, address: Any, at: Any) -> None:
        """Write a vector of four-byte numbers at a distance from an address."""
        pointer = self.builder.gep(address, [at])
        vector = self.builder.bitcast(pointer, value.type.as_pointer())
        self.builder.store(value, vector, align=4)

    def repeated(self, value: Any, lanes: int) -> Any:
        """Return a vector of one number."""
        undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
        first = self.builder.insert_element(undefined, value, index(0))
        order = ir.Constant(ir.VectorType(INT32, lanes), [0] * lanes)
        return self.builder.shuffle_vector(first, undefined, order)

    def chosen_lanes(self, vector: Any, lanes: list[int]) -> Any:
        """Return some lanes of a vector."""
        undefined = ir.Constant(vector.type, ir.Undefined)
        order = ir.Constant(ir.VectorType(INT32, len(lanes)), lanes)
        return self.builder.shuffle_vector(vector, undefined, order)

    def woven(self, vectors: list[Any]) -> Any:
        """Return the first lanes of vectors, then their second ones, and so on."""
        joined = vectors
        while len(joined) > 1:
            lanes = list(range(2 * joined[0].type.count))
            order = ir.Constant(ir.VectorType(INT32, len(lanes)), lanes)
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
        loop = cgutils.for_range_slice(self.builder, start, stop, index(1), INT64)
        with loop as (number, _):
            yield number

    def chosen(
        self,
        value: Any,
        cases: Mapping[int, Callable[[], None]],
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        """Write the case of a number; without ``otherwise`` there are no others."""
        end = self.builder.append_basic_block("chosen.end")
        rest = end if otherwise is None else self.builder.append_basic_block("chosen.rest")
        switch = self.builder.switch(value, rest)
        for number, write in cases.items():
            block = self.builder.append_basic_block(f"chosen.{number}")
            switch.add_case(index(number), block)
            self.builder.position_at_end(block)
            write()
            self.builder.branch(end)
        if otherwise is not None:
            self.builder.position_at_end(rest)
            otherwise()
            self.builder.branch(end)
        self.builder.position_at_end(end)

    def chosen_pair(
        self,
        first: Any,
        second: Any,
        pairs: list[tuple[int, int]],
        write: Callable[[int, int], None],
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        """Write the case of two numbers, each below 256."""
        number = self.builder.add(self.builder.mul(first, index(256)), second)
        self.chosen(number, {256 * a + b: partial(write, a, b) for a, b in pairs}, otherwise)


def signature_of(*arguments: Any) -> Any:
    """Return the signature of a step: whole numbers are int64."""
    kinds = [types.int64 if isinstance(a, types.Integer) else a for a in arguments]
    return types.void(*kinds)


@intrinsic
def uncounted(typing_context: Any, array: Any) -> Any:
    """Return a view of an array, in a kernel, whose slices count no references."""
    # Each slice of an array changes the array's counter, atomically: in an inner loop that costs
    # more than what the loop computes, and threads that slice one array wait for each other. A
    # function may view only its own parameters so: its caller keeps them until it returns. An
    # array that the function made itself could be freed while the view is in use.

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        make = make_array(signature.args[0])
        owned = make(context, builder, arguments[0])
        view = make(context, builder)
        for field in ("nitems", "itemsize", "data", "shape", "strides"):
            setattr(view, field, getattr(owned, field))
        # Without a record of memory there is nothing to count.
        view.meminfo = ir.Constant(view.meminfo.type, None)
        view.parent = ir.Constant(view.parent.type, None)
        return view._getvalue()

    return array(array), generate
