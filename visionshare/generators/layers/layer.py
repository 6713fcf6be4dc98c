"""What a layer is: what it makes of images, and what that costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.parameters import Parameters

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.states import Arrays, State

#: Rows, columns and channels of an image.
Shape = tuple[int, int, int]
#: Images whose gradients are summed together, in the same order on any number of threads.
AT_ONCE = 64
#: Layers that gradients pass.
PASSING = "a family that fine-tuning can move on maps: patches, or layers of templates"


class LayerCode(NamedTuple):
    """A layer as compiled functions read it."""

    #: Sizes and tables, int64.
    ints: np.ndarray
    #: float32; integers of 32 bits seen as such.
    weights: np.ndarray
    #: Numbers of working memory of 32 bits.
    work: int


class Selection(NamedTuple):
    """A layer restricted to some of its outputs."""

    layer: Fitted
    #: Where the chosen outputs are among those of the smaller layer.
    outputs: np.ndarray
    #: Channels of its input that the smaller layer still reads, ascending; None for all.
    channels: np.ndarray | None = None


class Kind:
    """What is known of a kind of layer before and after it is fitted."""

    kind: ClassVar[str]
    #: Whether gradients move the layer: its folder has a module ``moving``.
    moves: ClassVar[bool] = False
    #: Where the layer stands in a network of integers: 0 before templates, 1 templates, 2 units;
    #: None where it has no integers.
    integer_rank: ClassVar[int | None] = None
    #: Whether the layer can be the first of a network of integers that has weights.
    weighs_pixels: ClassVar[bool] = True

    def check_moves(self) -> bool:
        """Return whether gradients move the layer; raise where its parameters forbid it."""
        return self.moves

    def check_passes_gradients(self) -> None:
        """Raise an InputError unless gradients reach the layers before this one."""
        if not self.moves:
            raise InputError("family", self.kind, PASSING)


class Fitted(Kind, ABC):
    """A fitted layer: a function of images (n, *in_shape), given by arrays.

    A kind of layer is a frozen dataclass derived from this class. Its folder has the modules
    ``kernels``, ``c`` and ``onnx``; ``moving`` where gradients move it.
    """

    #: Whether the layer is a step of compiled chains.
    compiled: ClassVar[bool] = True
    #: Whether the layer computes with integers: bytes in, bytes out.
    takes_bytes: ClassVar[bool] = False
    #: Whether the layer only rearranges what a pixel stands for: bytes in, bytes out.
    keeps_bytes: ClassVar[bool] = False
    #: Whether some outputs need only some channels of the input: less of the layers before.
    reads_some_channels: ClassVar[bool] = False
    #: Whether its kernel says where maxima are.
    has_places: ClassVar[bool] = False
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

    def ordered_outputs(self) -> np.ndarray:
        """Return all numbers of the flattened output, template by template."""
        return np.arange(int(np.prod(self.out_shape)))

    def blocks(self, outputs: np.ndarray) -> np.ndarray:
        """Return the block of each output: outputs of one block share the layer's work."""
        return np.zeros(len(outputs), np.int64)

    def added_macs(self, outputs: np.ndarray, chosen: np.ndarray) -> np.ndarray | None:
        """Return what each output alone adds to the cost of chosen ones; None if unknown."""
        return None

    def as_family(self, outputs: np.ndarray) -> Any:
        """Return the family of features that these outputs are; None for other layers."""
        return None

    def place_boxes(self, places: np.ndarray) -> np.ndarray:
        """Return the pixels of an input where maxima are, (n, 4); asked where it has places."""
        raise NotImplementedError

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
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> Fitted:
        """Return the layer that :meth:`to_state` described."""

    @property
    def steps(self) -> list[tuple[Any, LayerCode]]:
        """The kernels that compute the layer one after the other, and what they read."""
        return [(self._module("kernels").forward, self.code)]  # type: ignore[attr-defined]

    def moving(self) -> Any:
        """Return a layer that moves as a function of parameters that gradients move."""
        return self._module("moving").moving(self)

    def in_integers(self) -> Fitted:
        """Return the layer of integers that takes the place of one without parameters."""
        return self._module("integers").of_layer(self)

    def to_c(self, writer: Writer, inner: Unit) -> Unit:
        """Return the unit of C that computes the layer and hands its output to another unit."""
        return self._module("c").emit(self, writer, inner)

    def to_onnx(self, images: str, graph: Graph) -> str:
        """Return the name of the output in a graph, for inputs (n, *in_shape)."""
        return self._module("onnx").emit(self, images, graph)

    def _module(self, name: str) -> Any:
        """Return a module of the folder of the layer's kind."""
        return import_module(f"{type(self).__module__.rpartition('.')[0]}.{name}")


def pixel_unit(images: np.ndarray) -> np.float32:
    """Return what the values of images are multiplied with: bytes are read as 0 to 1."""
    return np.float32(1 / 255 if images.dtype == np.uint8 else 1)


class LayerList(Protocol):
    """What emitters read of a network."""

    layers_: list[Any]
    places_: np.ndarray
    image_shape_: tuple[int, ...]
    n_features_: int

    @property
    def in_whole_numbers(self) -> bool:
        """Whether all layers compute with integers."""

    def transform(self, images: np.ndarray) -> np.ndarray:
        """Return features (n_images, n), float32."""


class Layer(Kind, Parameters, ABC):
    """A layer before it is fitted: its parameters."""

    def check_parameters(self) -> None:
        """Check all parameters without images."""

    @abstractmethod
    def fit(self, inputs: Any, y: np.ndarray | None, rng: np.random.Generator) -> Fitted:
        """Return the layer, fitted to what the layers before it make of training images."""
        # Inputs are (n, *in_shape), an array or ComputedImages, uint8 or float32.
