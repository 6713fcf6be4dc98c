"""Arrays inside a kernel that are not counted."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


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
