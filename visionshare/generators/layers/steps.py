"""How a compiled chain calls the kernels of layers: they all have one signature."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any

from llvmlite import ir
from numba import cfunc, types
from numba.extending import intrinsic

_FLOATS = types.float32[::1]
_SIGNATURE = types.void(
    _FLOATS,  # x: the values of an image
    types.float32,  # unit: what they are multiplied with
    types.int64[::1],  # ints: sizes and tables
    _FLOATS,  # weights
    _FLOATS,  # work: memory of any content
    _FLOATS,  # out: the outputs
    types.int32[::1],  # places: where maxima are; not written when empty
)

_COMPILING = Lock()


class Kernel:
    """The kernel of a kind of layer, for one image, compiled when it is first needed."""

    # The function is ``forward(x, unit, ints, weights, work, out, places)``, as numba compiles it.

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    @cached_property
    def _compiled(self) -> Any:
        return cfunc(_SIGNATURE, cache=True)(self._function)

    @property
    def address(self) -> int:
        """Where the compiled function starts, for ``call_kernel``."""
        # Two threads that compiled it would keep one function and call the other.
        with _COMPILING:
            return int(self._compiled.address)


#: Decorates the kernel of a kind of layer.
kernel = Kernel


@intrinsic
def call_kernel(
    typing_context: Any,
    address: Any,
    x: Any,
    unit: Any,
    ints: Any,
    weights: Any,
    work: Any,
    out: Any,
    places: Any,
) -> Any:
    """Call the kernel at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = [context.get_value_type(kind) for kind in signature.args[1:]]
        function = ir.FunctionType(ir.VoidType(), kinds).as_pointer()
        builder.call(builder.inttoptr(arguments[0], function), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.int64, *_SIGNATURE.args), generate
