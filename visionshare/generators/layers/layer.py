"""What a layer is: what it makes of images, and what that costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from visionshare.generators.parameters import Parameters

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.moving import Moving

__all__ = ["Fitted", "Layer", "LayerCode", "Selection", "Shape", "raster_shape"]

#: Rows, columns and channels of an image.
Shape = tuple[int, int, int]


def raster_shape(shape: tuple[int, ...]) -> Shape:
    """Return the rows, columns and channels of an image; a vector is one row."""
    if len(shape) == 1:
        return 1, int(shape[0]), 1
    if len(shape) == 2:
        return int(shape[0]), int(shape[1]), 1
    return int(shape[0]), int(shape[1]), int(shape[2])


class LayerCode(NamedTuple):
    """A layer as compiled functions read it."""

    #: Sizes and tables, int64.
    ints: np.ndarray
    #: float32; int32 of layers of integers.
    weights: np.ndarray
    #: Numbers of working memory, of the type of the weights; they begin as zeros.
    work: int


class Selection(NamedTuple):
    """A layer restricted to some of its outputs."""

    layer: Fitted
    #: Where the chosen outputs are among those of the smaller layer.
    outputs: np.ndarray
    #: Channels of its input that the smaller layer still reads, ascending; None for all.
    channels: np.ndarray | None = None


class Fitted(ABC):
    """A fitted layer: a function of images (n, *in_shape), given by arrays.

    A kind of layer is a frozen dataclass derived from this class.
    """

    kind: ClassVar[str]
    #: Whether the layer only rearranges what a pixel stands for: bytes in, bytes out.
    keeps_bytes: ClassVar[bool] = False
    #: Whether some outputs need only some channels of the input: less of the layers before.
    reads_some_channels: ClassVar[bool] = False
    in_shape: Shape

    @property
    @abstractmethod
    def out_shape(self) -> Shape:
        """Rows, columns and channels of an output."""

    @abstractmethod
    def macs(self, outputs: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates per image of some outputs; of all when omitted."""

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The learned arrays by name."""
        return {}

    @property
    def n_parameters(self) -> int:
        """Number of learned numbers."""
        return sum(int(array.size) for array in self.arrays.values())

    @property
    def n_templates(self) -> int | None:
        """Number of templates, where the layer has any."""
        return None

    def take(self, outputs: np.ndarray) -> Selection:
        """Return the layer restricted to some outputs, numbers of its flattened output."""
        return Selection(self, outputs)

    def take_channels(self, channels: np.ndarray) -> Fitted:
        """Return the layer for inputs that have only these channels, ascending."""
        # Only layers that name channels in `take` are asked.
        raise NotImplementedError

    def groups(self, outputs: np.ndarray) -> np.ndarray | None:
        """Return the group of each output; outputs of a group are chosen together."""
        return None

    def outer_boxes(self, inputs: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return the pixels of an input that boxes of its output depend on, (n, 4), float64."""
        whole = np.array([0, self.in_shape[0], 0, self.in_shape[1]], np.float64)
        return np.tile(whole, (len(boxes), 1))

    @abstractmethod
    def describe(self, output: int) -> dict[str, Any]:
        """Return plain values and small arrays that describe one output, for pictures."""

    def to_state(self) -> dict[str, Any]:
        """Return the plain values from which, with ``arrays``, the layer can be made again."""
        return {}

    @classmethod
    @abstractmethod
    def from_state(
        cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray], in_shape: Shape
    ) -> Fitted:
        """Return the layer that :meth:`to_state` described."""

    @property
    def codes(self) -> list[tuple[str, LayerCode]]:
        """The kinds of compiled steps that compute the layer, and what they read."""
        return [(self.kind, self.code)]  # type: ignore[attr-defined]

    def moving(self) -> Moving:
        """Return the layer as a function of parameters that gradients move."""
        from visionshare.generators.layers.moving import Moving

        return Moving(self)

    def to_c(self, writer: Writer, inner: Unit) -> Unit:
        """Return the unit of C that computes the layer and hands its output to another unit."""
        unit: Unit = self._module("c").emit(self, writer, inner)
        return unit

    def to_onnx(self, images: str, graph: Graph) -> str:
        """Return the name of the output in a graph, for inputs (n, *in_shape)."""
        name: str = self._module("onnx").emit(self, images, graph)
        return name

    def _module(self, name: str) -> Any:
        """Return a module of the folder of the layer's kind."""
        return import_module(f"{type(self).__module__.rpartition('.')[0]}.{name}")


class Layer(Parameters, ABC):
    """A layer before it is fitted: its parameters."""

    kind: ClassVar[str]

    def check_parameters(self) -> None:
        """Check all parameters without images."""

    @abstractmethod
    def fit(self, inputs: Any, y: np.ndarray | None, rng: np.random.Generator) -> Fitted:
        """Return the layer, fitted to what the layers before it make of training images."""
        # Inputs are (n, *in_shape), an array or ComputedImages, uint8 or float32.
