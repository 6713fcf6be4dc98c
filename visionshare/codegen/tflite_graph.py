"""Tensors and operators of one TensorFlow Lite file, written as flatbuffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import ExportError

# Numbers of the schema: of an operator, of the table of its options, and its least version.
_OPERATORS = {
    "ADD": (0, 11, 1),
    "CONCATENATION": (2, 10, 2),
    "CONV_2D": (3, 1, 3),
    "DEPTHWISE_CONV_2D": (4, 2, 3),
    "DEQUANTIZE": (6, 38, 2),
    "FLOOR": (8, 0, 1),
    "FULLY_CONNECTED": (9, 8, 1),
    "MAX_POOL_2D": (17, 5, 2),
    "MUL": (18, 21, 2),
    "RELU": (19, 0, 1),
    "RESHAPE": (22, 17, 1),
    "SOFTMAX": (25, 9, 1),
    "PAD": (34, 22, 2),
    "GATHER": (36, 23, 1),
    "SUB": (41, 28, 1),
    "DIV": (42, 29, 1),
    "CAST": (53, 37, 1),
    "MAXIMUM": (55, 39, 1),
    "MINIMUM": (57, 39, 1),
    "SLICE": (65, 48, 2),
    "SUM": (74, 27, 1),
    "QUANTIZE": (114, 89, 1),
    "BATCH_MATMUL": (126, 101, 1),
}
_TYPES = {"float32": 0, "int32": 2, "uint8": 3, "int8": 9}
_SCHEMA = 3
_ALIGNED = 16


def require_flatbuffers() -> Any:
    """Return the package flatbuffers."""
    try:
        import flatbuffers
        import flatbuffers.number_types
    except ImportError:
        message = "the package flatbuffers is not installed: pip install 'visionshare[tflite]'"
        raise ExportError(message) from None
    return flatbuffers


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file: its number, and what it holds."""

    number: int
    shape: tuple[int, ...]
    type: str
    #: Of integers that stand for (value − zero) · scale, one scale or one of each first index.
    scales: np.ndarray | None = None
    zero: int = 0
    #: The axis of many scales.
    axis: int = 0
    values: np.ndarray | None = None
    name: str = ""

    @property
    def scale(self) -> float:
        """What a step of integers with one scale is worth."""
        assert self.scales is not None
        return float(self.scales[0])


class TfliteGraph:
    """Collects the tensors and operators of a classifier."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Tensor] = {}
        self.operators: list[tuple[str, list[int], int, tuple[Any, ...]]] = []

    def tensor(
        self, shape: Sequence[int], type: str, scales: Any = None, zero: int = 0, **more: Any
    ) -> Tensor:
        """Return a new tensor."""
        if scales is not None:
            scales = np.atleast_1d(np.asarray(scales, np.float32))
        made = Tensor(len(self.tensors), tuple(map(int, shape)), type, scales, zero, **more)
        self.tensors.append(made)
        return made

    def constant(self, values: Any, scales: Any = None, axis: int = 0) -> Tensor:
        """Return a tensor of known values, of the dtype that they have."""
        array = np.asarray(values)
        key = (array.dtype.str, array.shape, array.tobytes())
        if scales is None and key in self._constants:
            return self._constants[key]
        made = self.tensor(array.shape, array.dtype.name, scales, axis=axis, values=array)
        return self._constants.setdefault(key, made) if scales is None else made

    def like_bytes(self, shape: Sequence[int]) -> Tensor:
        """Return a tensor of bytes: int8 from −128, which stands for 0."""
        return self.tensor(shape, "int8", 1, -128)

    def node(self, operator: str, *inputs: Tensor, out: Tensor, options: Any = ()) -> Tensor:
        """Add an operator, with the options of its table in the order of the schema."""
        numbers = [tensor.number for tensor in inputs]
        self.operators.append((operator, numbers, out.number, tuple(options)))
        return out

    def number(self, value: float, type: str, n_axes: int = 4) -> Tensor:
        """Return one number, with as many axes of length 1 as what it is added to."""
        return self.constant(np.full((1,) * n_axes, value, type))

    def apply(self, operator: str, *inputs: Tensor, type: str = "") -> Tensor:
        """Add an operator of each element by itself; sides of length 1 are repeated."""
        shape = np.broadcast_shapes(*(tensor.shape for tensor in inputs))
        out = self.tensor(shape, type or inputs[0].type)
        kinds = [np.int8(_TYPES[tensor.type]) for tensor in (inputs[0], out)]
        return self.node(operator, *inputs, out=out, options=kinds if operator == "CAST" else ())

    def total(self, values: Tensor, axis: int) -> Tensor:
        """Return sums along an axis, which stays with a length of 1."""
        shape = list(values.shape)
        shape[axis] = 1
        out = self.tensor(shape, values.type)
        axes = self.constant(np.array([axis], np.int32))
        return self.node("SUM", values, axes, out=out, options=[True])

    def apply_matrix(self, values: Tensor, matrix: np.ndarray) -> Tensor:
        """Return the sums of the columns of floats that the rows of a matrix say."""
        table = self.constant(matrix.astype(np.float32))
        out = self.tensor((values.shape[0], len(matrix)), "float32")
        return self.node("FULLY_CONNECTED", values, table, out=out, options=[None])

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the product of two matrices of floats."""
        out = self.tensor((a.shape[0], b.shape[1]), "float32")
        return self.node("BATCH_MATMUL", a, b, out=out)

    def joined(self, parts: Sequence[Tensor], shape: Sequence[int], axis: int) -> Tensor:
        """Return tensors one behind the other along an axis."""
        out = self.tensor(shape, parts[0].type, parts[0].scales, parts[0].zero)
        return self.node("CONCATENATION", *parts, out=out, options=[np.int32(axis)])

    def reshaped(self, values: Tensor, *shape: int) -> Tensor:
        """Return the same values in another shape."""
        out = self.tensor(shape, values.type, values.scales, values.zero)
        return self.node("RESHAPE", values, self.constant(np.array(shape, np.int32)), out=out)

    def content(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], text: str) -> bytes:
        """Return the file."""
        return _Flatbuffer().write(self, inputs, outputs, text)


class _Offset(int):
    """Where something is that was written into a file."""


class _Flatbuffer:
    """A flatbuffer: what is inside of a table is written before it."""

    def __init__(self) -> None:
        flatbuffers = require_flatbuffers()
        kinds = flatbuffers.number_types
        self._builder = flatbuffers.Builder(4096)
        self._flags = {
            bool: kinds.BoolFlags,
            np.uint8: kinds.Uint8Flags,
            np.int8: kinds.Int8Flags,
            np.int32: kinds.Int32Flags,
            np.uint32: kinds.Uint32Flags,
            np.float32: kinds.Float32Flags,
        }

    def write(
        self, graph: TfliteGraph, inputs: Sequence[Tensor], outputs: Sequence[Tensor], text: str
    ) -> bytes:
        """Return the bytes of a file."""
        names = sorted({operator for operator, *_ in graph.operators})
        # 1) operators in use, by their numbers of old and new files
        codes = []
        for name in names:
            number, _, version = _OPERATORS[name]
            old = np.int8(min(number, 127))
            codes.append(self._table(old, None, np.int32(version), np.int32(number)))
        # 2) buffers: the first one is empty, and of tensors without values
        buffers = [self._table()]
        tensors = []
        for tensor in graph.tensors:
            number = 0
            if tensor.values is not None:
                number = len(buffers)
                buffers.append(self._table(self._data(tensor.values)))
            tensors.append(self._tensor(tensor, number))
        # 3) the graph, which is all there is
        operators = [self._operator(names, *operator) for operator in graph.operators]
        ends = [self._numbers([tensor.number for tensor in ends]) for ends in (inputs, outputs)]
        subgraph = self._table(
            self._list(tensors), *ends, self._list(operators), self._text("main")
        )
        model = self._table(
            np.uint32(_SCHEMA),
            self._list(codes),
            self._list([subgraph]),
            self._text(text),
            self._list(buffers),
        )
        self._builder.Finish(model, b"TFL3")
        return bytes(self._builder.Output())

    def _tensor(self, tensor: Tensor, buffer: int) -> _Offset:
        scaling = None
        if tensor.scales is not None:
            zeros = np.full(len(tensor.scales), tensor.zero, np.int64)
            scales = self._numbers(tensor.scales)
            axis = np.int32(tensor.axis)
            scaling = self._table(None, None, scales, self._numbers(zeros), None, None, axis)
        name = self._text(tensor.name) if tensor.name else None
        shape = self._numbers(tensor.shape)
        type = np.int8(_TYPES[tensor.type])
        return self._table(shape, type, np.uint32(buffer), name, scaling)

    def _operator(
        self, names: list[str], name: str, inputs: list[int], output: int, options: tuple[Any, ...]
    ) -> _Offset:
        kind = _OPERATORS[name][1]
        lists = [self._numbers(numbers) for numbers in (inputs, [output])]
        table = self._table(*options) if kind else None
        return self._table(np.uint32(names.index(name)), *lists, np.uint8(kind), table)

    def _table(self, *fields: Any) -> _Offset:
        """Write a table: fields in the order of the schema, None where they keep the default."""
        self._builder.StartObject(len(fields))
        for slot, field in enumerate(fields):
            if isinstance(field, _Offset):
                self._builder.PrependUOffsetTRelativeSlot(slot, field, 0)
            elif field is not None:
                self._builder.PrependSlot(self._flags[type(field)], slot, field, 0)
        return _Offset(self._builder.EndObject())

    def _list(self, tables: list[_Offset]) -> _Offset:
        self._builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            self._builder.PrependUOffsetTRelative(table)
        return _Offset(self._builder.EndVector())

    def _numbers(self, values: Sequence[int] | np.ndarray) -> _Offset:
        array = values if isinstance(values, np.ndarray) else np.array(values, np.int32)
        return _Offset(self._builder.CreateNumpyVector(array))

    def _data(self, values: np.ndarray) -> _Offset:
        content = values.astype(values.dtype.newbyteorder("<")).tobytes()
        self._builder.Prep(_ALIGNED, len(content))
        return _Offset(self._builder.CreateByteVector(content))

    def _text(self, text: str) -> _Offset:
        return _Offset(self._builder.CreateString(text))
