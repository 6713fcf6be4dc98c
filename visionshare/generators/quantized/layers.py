"""Layers of whole numbers: what each computes of images of bytes, checked when it is made."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.quantized.packing import packed_bytes
from visionshare.generators.quantized.rounding import format_of

__all__ = ["CellLayer", "DeslantLayer", "Layer", "UnitLayer"]

Shape = tuple[int, int, int]
# Sums are of 32 bits; shifts beyond leave nothing of them.
_LARGEST_SUM, _LARGEST_SHIFT = 2**31 - 1, 30
_MACS_OF_DESLANTING = 4


class Layer:
    """What a layer computes of images (n, H, W, C), uint8.

    Attributes
    ----------
    kind : str
        Of the class, in files.
    in_shape, out_shape : tuple of int
        Rows, columns and channels of an image, and of what the layer makes of it.
    """

    kind: ClassVar[str]
    in_shape: Shape

    @property
    @abstractmethod
    def out_shape(self) -> Shape: ...

    @property
    @abstractmethod
    def macs(self) -> int:
        """Multiply-accumulates per image."""

    @property
    def n_numbers(self) -> int:
        """Learned numbers: weights, biases and shifts."""
        return 0

    @property
    def nbytes(self) -> int:
        """Bytes of the tables, packed."""
        return 0

    @abstractmethod
    def transform(self, images: np.ndarray) -> np.ndarray:
        """Return the layer's bytes (n, *out_shape) for images (n, *in_shape), uint8."""


@dataclass(frozen=True, eq=False)
class DeslantLayer(Layer):
    """Images without slant, in fixed point.

    See :func:`visionshare.generators.deslanted.family.deslanted`.

    Parameters
    ----------
    in_shape : tuple of int

    Raises
    ------
    InputError
        If moments of such images would not fit into 64 bits.
    """

    in_shape: Shape
    kind: ClassVar[str] = "deslant"

    def __post_init__(self) -> None:
        rows, cols, channels = self.in_shape
        mass = 255 * rows * cols * channels
        if mass * mass * max(rows, cols) ** 2 >= 2**61 or rows >= 2000:
            raise InputError("image_shape", self.in_shape, "smaller images, such as 128×128")

    @property
    def out_shape(self) -> Shape:
        return self.in_shape

    @property
    def macs(self) -> int:
        return _MACS_OF_DESLANTING * int(np.prod(self.in_shape))

    def transform(self, images: np.ndarray) -> np.ndarray:
        from visionshare.generators.quantized.kernels import deslanted_block

        out = np.empty_like(images)
        deslanted_block(np.ascontiguousarray(images), out)
        return out


class _WeightedLayer(Layer):
    """A layer of weighted sums, each with a bias and a shift."""

    bits: int | str
    weights: np.ndarray
    biases: np.ndarray
    shifts: np.ndarray

    def _check_sums(self) -> None:
        """Check numbers and their range: no sum leaves 32 bits."""
        n = len(self.weights)
        accepted = f"a vector of {n} whole numbers"
        for name, values in (("biases", self.biases), ("shifts", self.shifts)):
            if values.shape != (n,) or values.dtype.kind not in "iu":
                raise InputError(name, values.shape, accepted)
        numbers = format_of("bits", self.bits)
        if n == 0 or self.weights.dtype.kind not in "iu" or not numbers.holds(self.weights):
            raise InputError("weights", self.weights.dtype, f"whole numbers of bits = {self.bits}")
        if self.shifts.min() < 0 or self.shifts.max() > _LARGEST_SHIFT:
            given = (int(self.shifts.min()), int(self.shifts.max()))
            raise InputError("shifts", given, f"0 to {_LARGEST_SHIFT}")
        sizes = 255 * np.abs(self.weights.reshape(n, -1).astype(np.int64)).sum(axis=1)
        largest = int((sizes + np.abs(self.biases.astype(np.int64))).max())
        # The half that is added before a shift fits too.
        if largest + (1 << _LARGEST_SHIFT - 1) > _LARGEST_SUM:
            raise InputError("weights", f"sums up to {largest}", "sums of 31 bits")

    @property
    def n_numbers(self) -> int:
        return int(self.weights.size + self.biases.size + self.shifts.size)

    @property
    def nbytes(self) -> int:
        # Each template begins with a byte of its own.
        each = packed_bytes(self.weights[0].size, self.bits)
        of_bias = 2 if np.abs(self.biases).max() < 2**15 else 4
        return len(self.weights) * (each + of_bias + 1)


@dataclass(frozen=True, eq=False)
class CellLayer(_WeightedLayer):
    """Largest responses of templates in cells: rectified, shifted, cut off at 255.

    out[r, c, t] = min(255, shifted(max(0, max over the cell of (image ⊗ weights_t) + bias_t), s_t))
    with zeros around the image, see :func:`visionshare.generators.quantized.rounding.shifted`.

    Parameters
    ----------
    in_shape : tuple of int
    weights : ndarray of shape (n, q, q, C), int
    bits : {8, 4, 2, "ternary"}
        Of the weights.
    biases : ndarray of shape (n,), int32
    shifts : ndarray of shape (n,), int32
    pads : tuple of int
        Zero rows above and below, and zero columns at the sides.
    row_cells, col_cells : ndarray of int64
        The cell of each row of positions, and of each column; −1 for none.

    Raises
    ------
    InputError
        If they do not fit each other, or a sum could leave 32 bits.
    """

    in_shape: Shape
    weights: np.ndarray
    bits: int | str
    biases: np.ndarray
    shifts: np.ndarray
    pads: tuple[int, int]
    row_cells: np.ndarray
    col_cells: np.ndarray
    kind: ClassVar[str] = "cells"

    def __post_init__(self) -> None:
        self._check_sums()
        q = self.weights.shape[1] if self.weights.ndim == 4 else 0
        shape = (len(self.weights), q, q, self.in_shape[2])
        if q < 1 or self.weights.shape != shape:
            raise InputError("weights", self.weights.shape, f"(n, q, q, {self.in_shape[2]})")
        axes = zip(self.in_shape[:2], self.pads, (self.row_cells, self.col_cells), strict=True)
        for side, pad, cells in axes:
            fits = pad >= 0 and cells.ndim == 1 and 0 < len(cells) <= side + 2 * pad - q + 1
            if not fits or cells.dtype.kind != "i" or int(cells.min()) < -1:
                raise InputError("cells", cells.shape, f"cells of positions in {side} + 2 · {pad}")
            used = np.unique(cells[cells >= 0])
            if len(used) == 0 or not np.array_equal(used, np.arange(len(used))):
                raise InputError("cells", used.tolist(), "cells 0, 1, 2, …")

    @property
    def out_shape(self) -> Shape:
        down, across = (int(cells.max()) + 1 for cells in (self.row_cells, self.col_cells))
        return down, across, len(self.weights)

    @property
    def macs(self) -> int:
        down, across = (int((cells >= 0).sum()) for cells in (self.row_cells, self.col_cells))
        return down * across * int(self.weights.size)

    @cached_property
    def _taps(self) -> np.ndarray:
        n, q = self.weights.shape[:2]
        lines = self.weights.reshape(n, q, -1)
        return np.ascontiguousarray(lines.transpose(1, 2, 0), np.int32)

    def transform(self, images: np.ndarray) -> np.ndarray:
        from visionshare.generators.quantized.kernels import cells_of_block

        rows, cols, channels = self.in_shape
        lines = np.ascontiguousarray(images).reshape(len(images), rows, cols * channels)
        out = np.empty((len(images), *self.out_shape), np.uint8)
        cells_of_block(
            lines, self._taps, self.biases.astype(np.int32), self.shifts.astype(np.int32),
            (self.pads[0], self.pads[1] * channels), self.row_cells.astype(np.int64),
            self.col_cells.astype(np.int64), out,
        )  # fmt: skip
        return out


@dataclass(frozen=True, eq=False)
class UnitLayer(_WeightedLayer):
    """Weighted sums of all inputs, rectified or squared, shifted, cut off at 255.

    A square is that of a sum shifted to a signed byte, divided by 64.

    Parameters
    ----------
    in_shape : tuple of int
    weights : ndarray of shape (n, H · W · C), int
    bits : {8, 4, 2, "ternary"}
    biases, shifts : ndarray of shape (n,), int32
    square : bool

    Raises
    ------
    InputError
        If they do not fit each other, or a sum could leave 32 bits.
    """

    in_shape: Shape
    weights: np.ndarray
    bits: int | str
    biases: np.ndarray
    shifts: np.ndarray
    square: bool = False
    kind: ClassVar[str] = "units"

    def __post_init__(self) -> None:
        self._check_sums()
        n_inputs = int(np.prod(self.in_shape))
        if self.weights.shape != (len(self.weights), n_inputs):
            raise InputError("weights", self.weights.shape, f"(n, {n_inputs})")

    @property
    def out_shape(self) -> Shape:
        return 1, 1, len(self.weights)

    @property
    def macs(self) -> int:
        return int(self.weights.size) + self.square * len(self.weights)

    @cached_property
    def _columns(self) -> np.ndarray:
        return np.ascontiguousarray(self.weights.T, np.int32)

    def transform(self, images: np.ndarray) -> np.ndarray:
        from visionshare.generators.quantized.kernels import units_of_block

        out = np.empty((len(images), len(self.weights)), np.uint8)
        units_of_block(
            np.ascontiguousarray(images).reshape(len(images), -1), self._columns,
            self.biases.astype(np.int32), self.shifts.astype(np.int32), self.square, out,
        )  # fmt: skip
        return out.reshape(len(images), *self.out_shape)
