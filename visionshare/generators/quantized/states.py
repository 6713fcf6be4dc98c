"""Layers of whole numbers in files: plain values, and arrays with numbers packed to their bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.quantized.layers import CellLayer, DeslantLayer, Layer, UnitLayer
from visionshare.generators.quantized.packing import packed, packed_bytes, unpacked
from visionshare.generators.quantized.rounding import FORMATS, format_of

__all__ = ["layers_from_state", "layers_to_state"]

_MOST_LAYERS = 16
_LARGEST_TABLE = 2**26


def layers_to_state(
    layers: Sequence[Layer],
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Return plain values of layers, and arrays named "0.weights" and so on.

    Weights are packed; eight bytes of them are a number of 64 bits, as files hold them.
    """
    states, arrays = [], {}
    for number, layer in enumerate(layers):
        state: dict[str, Any] = {"kind": layer.kind}
        if isinstance(layer, (CellLayer, UnitLayer)):
            state |= {"bits": layer.bits, "weights": [int(n) for n in layer.weights.shape]}
            arrays[f"{number}.weights"] = _as_words(packed(layer.weights, layer.bits))
            for name in ("biases", "shifts"):
                arrays[f"{number}.{name}"] = getattr(layer, name).astype(np.int64)
        if isinstance(layer, CellLayer):
            state["pads"] = [int(pad) for pad in layer.pads]
            for name in ("row_cells", "col_cells"):
                arrays[f"{number}.{name}"] = getattr(layer, name).astype(np.int64)
        if isinstance(layer, UnitLayer):
            state["square"] = bool(layer.square)
        states.append(state)
    return states, arrays


def layers_from_state(
    states: Any, arrays: Mapping[str, np.ndarray], shape: tuple[int, ...]
) -> list[Layer]:
    """Return the layers that :func:`layers_to_state` described, of images of this shape.

    Raises
    ------
    InputError
        If they are no such layers, or do not fit together.
    """
    if not isinstance(states, list) or not 1 <= len(states) <= _MOST_LAYERS:
        raise InputError("layers", states, f"a list of 1 to {_MOST_LAYERS} layers")
    layers: list[Layer] = []
    for number, state in enumerate(states):
        if not isinstance(state, Mapping):
            raise InputError("layers", type(state).__name__, "tables")
        prefix = f"{number}."
        own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        layers.append(_layer(state, own, shape))
        shape = layers[-1].out_shape
        if int(np.prod(shape, dtype=np.float64)) > _LARGEST_TABLE:
            raise InputError("layers", shape, "smaller ones")
    return layers


def _layer(state: Mapping[str, Any], arrays: dict[str, np.ndarray], shape: Any) -> Layer:
    kind = state.get("kind")
    if kind == DeslantLayer.kind:
        return DeslantLayer(shape)
    if kind not in (CellLayer.kind, UnitLayer.kind):
        raise InputError("kind", kind, "'deslant', 'cells' or 'units'")
    bits = state.get("bits")
    if isinstance(bits, (list, dict)):
        raise InputError("bits", bits, "8, 4, 2 or 'ternary'")
    format_of("bits", bits)  # type: ignore[arg-type]
    common: dict[str, Any] = {
        "in_shape": shape,
        "weights": _weights(state.get("weights"), bits, arrays),
        "bits": bits,
        "biases": _vector(arrays, "biases"),
        "shifts": _vector(arrays, "shifts"),
    }
    if kind == UnitLayer.kind:
        if not isinstance(state.get("square"), bool):
            raise InputError("square", state.get("square"), "true or false")
        return UnitLayer(**common, square=state["square"])
    pads = state.get("pads")
    if not isinstance(pads, list) or len(pads) != 2 or not all(_is_size(pad, 0) for pad in pads):
        raise InputError("pads", pads, "two whole numbers")
    row_cells, col_cells = (_vector(arrays, name) for name in ("row_cells", "col_cells"))
    return CellLayer(**common, pads=(pads[0], pads[1]), row_cells=row_cells, col_cells=col_cells)


def _is_size(value: Any, least: int) -> bool:
    return type(value) is int and least <= value <= 65536


def _weights(shape: Any, bits: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    if not isinstance(shape, list) or not 2 <= len(shape) <= 4:
        raise InputError("weights", shape, "a shape")
    if not all(_is_size(side, 1) for side in shape):
        raise InputError("weights", shape, "a shape")
    n = int(np.prod(shape, dtype=np.float64))
    words = _vector(arrays, "weights")
    n_bytes = packed_bytes(n, bits)
    if n > _LARGEST_TABLE or len(words) != -(-n_bytes // 8):
        raise InputError("weights", len(words), f"words for {shape} numbers of bits = {bits}")
    numbers = unpacked(words.astype("<i8").view(np.uint8)[:n_bytes], bits, n)
    if not FORMATS[bits].holds(numbers):
        raise InputError("weights", "others", f"numbers of bits = {bits}")
    return numbers.reshape(shape)


def _as_words(data: np.ndarray) -> np.ndarray:
    filled = np.zeros(-(-len(data) // 8) * 8, np.uint8)
    filled[: len(data)] = data
    return filled.view("<i8").astype(np.int64)


def _vector(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    array = arrays.get(name)
    if array is None or array.ndim != 1 or array.dtype != np.int64:
        given = None if array is None else f"{array.dtype} of shape {array.shape}"
        raise InputError(name, given, "a vector of int64")
    if len(array) and np.abs(array).max() >= 2**31 and name != "weights":
        raise InputError(name, "larger ones", "numbers of 31 bits")
    return array
