"""Layers of integers of few bits: bytes in, bytes out, the same bits on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.integers.packing import packed, packed_bytes, unpacked
from visionshare.generators.layers.integers.rounding import FORMATS, format_of
from visionshare.generators.layers.layer import Fitted, LayerCode
from visionshare.generators.states import Arrays, State

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.codegen.tflite_graph import Tensor, TfliteGraph

# Sums have 32 bits; larger shifts leave nothing of them.
_LARGEST_SUM = 2**31 - 1
_LARGEST_SHIFT = 30
_LARGEST_TABLE = 2**26
_LARGEST_SIDE = 65536


def as_bytes(images: np.ndarray) -> np.ndarray:
    """Return checked images as uint8."""
    # Floats from 0 to 1 become bytes, to the nearest, halves up.
    if images.dtype == np.uint8:
        return images
    scaled = np.floor(np.clip(images, 0, 1) * np.float32(255) + np.float32(0.5))
    return np.asarray(scaled, np.uint8)


class IntegerLayer(Fitted):
    """What a layer computes of images (n, H, W, C), uint8."""

    takes_bytes = True
    #: Whether the layer has sums of weights.
    weighted: ClassVar[bool] = False
    #: Whether programs in vectors of bytes compute it.
    in_vectors: ClassVar[bool] = True

    @property
    def nbytes(self) -> int:
        """Bytes of the tables, packed as C holds them."""
        return 0

    @property
    def steps(self) -> list[tuple[Any, LayerCode]]:
        return [(self._module("integer_kernels").forward, self.code)]  # type: ignore[attr-defined]

    def describe(self, output: int) -> dict[str, Any]:
        """Return the place."""
        return {"kind": "quantized", "place": int(output)}

    def to_c(self, writer: Writer, inner: Unit) -> Unit:
        """Refuse: :mod:`visionshare.generators.layers.integer_c` writes all layers at once."""
        raise InputError("layers", "integers and floats", "layers of integers alone")

    def to_onnx(self, images: str, graph: Graph) -> str:
        """Return the name of the layer's bytes in a graph, as floats."""
        return self._module("onnx").emit_integers(self, images, graph)

    def to_tflite(self, images: Tensor, graph: TfliteGraph) -> Tensor:
        """Return the layer's bytes in a graph of TensorFlow Lite."""
        try:
            module = self._module("tflite")
        except ModuleNotFoundError:
            accepted = "layers that int8 of TensorFlow Lite computes exactly"
            raise InputError("layers", self.kind, accepted) from None
        return module.emit(self, images, graph)


class WeightedIntegerLayer(IntegerLayer):
    """A layer of weighted sums, each with a bias and a shift."""

    weighted = True
    #: Whether templates see one channel each, and whether the middle of a patch is added.
    of_one_channel: ClassVar[bool] = False
    adds_input: ClassVar[bool] = False
    #: Whether the sums of a cell are added; otherwise the largest stays.
    adds_cells: ClassVar[bool] = False
    #: Whether templates slide over the image.
    slides: ClassVar[bool] = False
    bits: int | str
    weights: np.ndarray
    biases: np.ndarray
    shifts: np.ndarray
    square: bool = False

    @property
    def margins(self) -> tuple[int, int]:
        """Zero rows above and below the input, and zero columns at its sides."""
        return 0, 0

    @property
    def n_rows(self) -> int:
        """Rows of a template."""
        return int(self.weights.shape[1]) if self.slides else 1

    @property
    def cell_edges(self) -> np.ndarray:
        """The first position of each cell and the one after the last, rows then columns."""
        return np.array([[0, 1], [0, 1]])

    def source_tables(
        self, line: int, column: int, plane: int
    ) -> list[tuple[str, np.ndarray, str]]:
        """Return tables for C of what templates see: their names, numbers and types."""
        # The input has so many values from a row, a pixel and a channel to the next.
        return []

    def _check_sums(self, added: int = 0) -> None:
        """Check numbers and their range: no sum leaves 32 bits."""
        # `added` is the largest number that is added to a sum of weights.
        n = len(self.weights)
        for name, values in (("biases", self.biases), ("shifts", self.shifts)):
            if values.shape != (n,) or values.dtype.kind not in "iu":
                raise InputError(name, values.shape, f"a vector of {n} whole numbers")
        numbers = format_of("bits", self.bits)
        if n == 0 or self.weights.dtype.kind not in "iu" or not numbers.holds(self.weights):
            raise InputError("weights", self.weights.dtype, f"whole numbers of bits = {self.bits}")
        if self.shifts.min() < 0 or self.shifts.max() > _LARGEST_SHIFT:
            given = (int(self.shifts.min()), int(self.shifts.max()))
            raise InputError("shifts", given, f"0 to {_LARGEST_SHIFT}")
        sizes = 255 * np.abs(self.weights.reshape(n, -1).astype(np.int64)).sum(axis=1)
        largest = int((sizes + np.abs(self.biases.astype(np.int64))).max()) + added
        # The half that is added before a shift fits too.
        if largest + (1 << _LARGEST_SHIFT - 1) > _LARGEST_SUM:
            raise InputError("weights", f"sums up to {largest}", "sums of 31 bits")

    @property
    def _exact_in_floats(self) -> bool:
        """Whether float32 holds all sums, and what is added before a shift."""
        weights = self.weights.reshape(len(self.weights), -1)
        sums = 255 * np.abs(weights.astype(np.int64)).sum(axis=1) + np.abs(self.biases)
        return bool((sums + self._halves).max() <= 2**24)

    @property
    def _halves(self) -> np.ndarray:
        """What is added to sums before they are shifted: to the nearest, halves up."""
        halves = 1 << np.maximum(self.shifts.astype(np.int64) - 1, 0)
        return np.where(self.shifts > 0, halves, 0)

    def _rounding(self, square: bool = False) -> tuple[Any, LayerCode]:
        """Return the compiled step that makes bytes of exact sums."""
        factors = np.ldexp(1.0, -self.shifts.astype(np.int64))
        weights = np.concatenate([self._halves, factors]).astype(np.float32)
        from visionshare.generators.layers.integers.kernels import forward

        return forward, LayerCode(np.array([len(self.shifts), square], np.int64), weights, 0)

    @property
    def n_parameters(self) -> int:
        """Number of weights, biases and shifts."""
        return int(self.weights.size + self.biases.size + self.shifts.size)

    @property
    def nbytes(self) -> int:
        # Each template begins with a byte of its own.
        each = packed_bytes(self.weights[0].size, self.bits)
        of_bias = 2 if np.abs(self.biases).max() < 2**15 else 4
        return len(self.weights) * (each + of_bias + 1)

    def describe(self, output: int) -> dict[str, Any]:
        """Return the weights and the bias of the template or unit of an output."""
        number = int(output) % len(self.weights)
        own = {"weights": self.weights[number], "bias": int(self.biases[number])}
        return super().describe(output) | own

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Weights, packed; eight bytes of them are a number of 64 bits. Biases and shifts."""
        data = packed(self.weights, self.bits)
        words = np.zeros(-(-len(data) // 8) * 8, np.uint8)
        words[: len(data)] = data
        return {
            "weights": words.view("<i8").astype(np.int64),
            "biases": self.biases.astype(np.int64),
            "shifts": self.shifts.astype(np.int64),
        }

    def to_state(self) -> dict[str, Any]:
        """Return the bits and the shape of the weights."""
        return {"bits": self.bits, "weights": [int(side) for side in self.weights.shape]}


def weighted_values(state: State, arrays: Arrays) -> dict[str, Any]:
    """Return weights, bits, biases and shifts of a description."""
    bits = state.get("bits")
    if isinstance(bits, (list, dict)):
        raise InputError("bits", bits, "8, 4, 2 or 'ternary'")
    format_of("bits", bits)  # type: ignore[arg-type]
    return {
        "weights": _weights(state.get("weights"), bits, arrays),
        "bits": bits,
        "biases": whole_vector(arrays, "biases"),
        "shifts": whole_vector(arrays, "shifts"),
    }


def _weights(shape: Any, bits: Any, arrays: Arrays) -> np.ndarray:
    sides = shape if isinstance(shape, list) and 2 <= len(shape) <= 4 else [None]
    if not all(type(side) is int and 1 <= side <= _LARGEST_SIDE for side in sides):
        raise InputError("weights", shape, "a shape")
    n = int(np.prod(shape, dtype=np.float64))
    words = whole_vector(arrays, "weights", most=2**63)
    n_bytes = packed_bytes(n, bits)
    if n > _LARGEST_TABLE or len(words) != -(-n_bytes // 8):
        raise InputError("weights", len(words), f"words for {shape} numbers of bits = {bits}")
    numbers = unpacked(words.astype("<i8").view(np.uint8)[:n_bytes], bits, n)
    if not FORMATS[bits].holds(numbers):
        raise InputError("weights", "others", f"numbers of bits = {bits}")
    return numbers.reshape(shape)


def whole_vector(arrays: Arrays, name: str, most: int = 2**31) -> np.ndarray:
    """Return a vector of int64 of a description, of numbers below ``most``."""
    array = arrays.get(name)
    if array is None or array.ndim != 1 or array.dtype != np.int64:
        given = None if array is None else f"{array.dtype} of shape {array.shape}"
        raise InputError(name, given, "a vector of int64")
    if most < 2**63 and len(array) and np.abs(array).max() >= most:
        raise InputError(name, "larger numbers", f"numbers below {most}")
    return array
