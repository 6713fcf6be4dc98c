"""Nodes and constants of one ONNX graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from visionshare.errors import ExportError, InputError

# Protocol buffers end at 2 GiB.
_LARGEST = 2**31 - 2**24
_DEEPEST = 16


def require_onnx() -> Any:
    """Return the package onnx."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        message = "the package onnx is not installed: pip install 'visionshare[onnx]'"
        raise ExportError(message) from None
    return onnx


class Graph:
    """Collects the nodes and constants of a classifier."""

    #: Name of the graph's input.
    IMAGES = "images"

    def __init__(self, pixel: str, shape: tuple[int, ...]) -> None:
        self._onnx = require_onnx()
        self.pixel = pixel
        self.shape = shape
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names: dict[Any, str] = {}
        self._nbytes = 0
        self._depth = 0
        self.images = self.IMAGES

    @property
    def bytes(self) -> bool:
        """Whether pixels are bytes; v stands for v / 255."""
        return self.pixel == "uint8"

    def constant(self, values: Any) -> str:
        """Return the name of a constant of the dtype of its values."""
        array = np.ascontiguousarray(values)
        text = array.dtype.kind in "UO"
        content = tuple(array.tolist()) if text else array.tobytes()
        key = ("constant", array.dtype.str, np.shape(values), content)
        if key not in self._names:
            self._nbytes += array.nbytes
            if self._nbytes > _LARGEST:
                raise InputError("classifier", f"{self._nbytes} bytes", f"at most {_LARGEST}")
            name = f"constant_{len(self.constants)}"
            array = (array.astype(object) if text else array).reshape(np.shape(values))
            self.constants.append(self._onnx.numpy_helper.from_array(array, name))
            self._names[key] = name
        return self._names[key]

    def node(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Return the name of the output of an operator of the default domain."""
        key = (operator, inputs, name, repr(sorted(attributes.items())))
        if key not in self._names:
            output = name or f"{operator.lower()}_{len(self.nodes)}"
            node = self._onnx.helper.make_node(
                operator, list(inputs), [output], f"node_{len(self.nodes)}", **attributes
            )
            self.nodes.append(node)
            self._names[key] = output
        return self._names[key]

    def add(self, family: Any) -> str:
        """Return the name of a family's features (n, n_features), float32."""
        if family.n_features_ == 0:
            raise InputError("family", f"{family.name} without features", "one feature or more")
        if self._depth >= _DEEPEST:
            raise InputError("family", "families inside families", f"at most {_DEEPEST} levels")
        self._depth += 1
        try:
            features: str = family.to_onnx(self)
        finally:
            self._depth -= 1
        return features

    def add_on(self, images: str, family: Any) -> str:
        """Return the name of a family's features of other images than the graph's input."""
        before = self.images, self.shape
        self.images = images
        self.shape = tuple(family.image_shape_)
        try:
            return self.add(family)
        finally:
            self.images, self.shape = before

    def take(
        self, values: str, indices: Sequence[int] | np.ndarray, size: int, axis: int = 1
    ) -> str:
        """Return the values at these indices of an axis of ``size``, without a node for all."""
        chosen = np.asarray(indices, np.int64)
        if np.array_equal(chosen, np.arange(size)):
            return values
        return self.node("Gather", values, self.constant(chosen), axis=axis)

    def values_of_top(self, values: str, k: int) -> str:
        """Return the k largest values of each row, (n, k), the largest first."""
        key = ("TopK", values, k)
        if key not in self._names:
            outputs = [f"topk_{len(self.nodes)}", f"topk_{len(self.nodes)}_numbers"]
            inputs = [values, self.constant(np.array([k], np.int64))]
            node = self._onnx.helper.make_node("TopK", inputs, outputs, f"node_{len(self.nodes)}")
            self.nodes.append(node)
            self._names[key] = outputs[0]
        return self._names[key]

    def concatenate(self, parts: Sequence[tuple[str, np.ndarray]]) -> str:
        """Return features (n, m) put together from parts, each with its columns' indices."""
        names = [name for name, _ in parts]
        features = self.node("Concat", *names, axis=1) if len(names) > 1 else names[0]
        columns = np.concatenate([indices for _, indices in parts])
        return self.take(features, np.argsort(columns, kind="stable"), len(columns))

    def pixels(self, indices: np.ndarray) -> str:
        """Return values (n, len(indices)) of the flattened images, of the images' type."""
        size = math.prod(self.shape)
        flat = self.images
        if len(self.shape) > 1:
            # 0 stands for the number of images.
            flat = self.node("Reshape", flat, self.constant(np.array([0, size])))
        return self.take(flat, indices, size)

    def inputs(self, indices: np.ndarray, offset: np.ndarray, scale: np.ndarray) -> str:
        """Return scaled inputs (value − offset) · scale, (n, len(indices)), in float64."""
        # Offset and scale are of all inputs. An offset of 0 and a scale of 1 take no node.
        values = self.doubles(self.pixels(indices))
        if self.bytes:
            values = self.node("Div", values, self.constant(np.float64(255)))
        offset = offset[indices].astype(np.float64)
        scale = scale[indices].astype(np.float64)
        if (offset != 0).any():
            values = self.node("Sub", values, self.constant(offset))
        if (scale != 1).any():
            values = self.node("Mul", values, self.constant(scale))
        return values

    def raster(self) -> str:
        """Return images (n, C, H, W), float32; bytes between 0 and 1."""
        return self.unit_range(self.planes())

    def planes(self) -> str:
        """Return images (n, C, H, W), of the images' type."""
        raster = self.images
        shape = self.shape
        if len(shape) == 3:
            raster = self.node("Transpose", raster, perm=[0, 3, 1, 2])
        else:
            size = (1, *shape) if len(shape) == 1 else shape
            raster = self.node("Reshape", raster, self.constant(np.array([0, 1, *size])))
        return raster

    def unit_range(self, values: str) -> str:
        """Return pixels as float32, bytes between 0 and 1."""
        if not self.bytes:
            return values
        return self.node("Mul", self.floats(values), self.constant(np.float32(1 / 255)))

    def floats(self, values: str) -> str:
        """Return values as float32."""
        return self.cast(values, "FLOAT")

    def doubles(self, values: str) -> str:
        """Return values as float64."""
        return self.cast(values, "DOUBLE")

    def cast(self, values: str, kind: str) -> str:
        """Return values as another type, by ONNX's name of it."""
        return self.node("Cast", values, to=int(getattr(self._onnx.TensorProto, kind)))
