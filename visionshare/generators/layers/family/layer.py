"""A layer that computes the features of any family of what the layers before it give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily
from visionshare.generators.inputs import raster_shape
from visionshare.generators.layers.layer import (
    PASSING,
    Fitted,
    Kind,
    Layer,
    Selection,
    Shape,
)
from visionshare.generators.parameters import unfitted_copy
from visionshare.generators.registry import family_from_state
from visionshare.generators.states import Arrays, State

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.codegen.onnx_graph import Graph


class _OfFamily(Kind):
    """What the family of a layer decides."""

    kind = "family"
    moves = True
    family: Any

    def check_moves(self) -> bool:
        """Return True; raise where the family cannot be tuned."""
        self.family.check_tunable()
        return True

    def check_passes_gradients(self) -> None:
        if not self.family.tunable_on_maps:
            raise InputError("family", self.family.name, PASSING)


@dataclass(frozen=True, eq=False)
class FeatureLayer(_OfFamily, Fitted):
    """The features of a fitted family, one channel each."""

    compiled = False
    in_shape: Shape
    family: FeatureFamily

    @property
    def out_shape(self) -> Shape:
        """One row and column of as many channels as there are features."""
        return 1, 1, self.family.n_features_

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The family's arrays."""
        return self.family.to_state()[1]

    @property
    def n_parameters(self) -> int:
        return self.family.n_parameters

    def macs(self, outputs: np.ndarray | None = None) -> int:
        return int(self.family.macs(outputs))

    def images(self, values: np.ndarray, are_bytes: bool) -> np.ndarray:
        """Return inputs (n, size), float32, as the family takes them."""
        images = values.astype(np.uint8) if are_bytes else values
        return images.reshape(len(values), *self.family.image_shape_)

    def features_of(self, values: np.ndarray, are_bytes: bool, n_jobs: int) -> np.ndarray:
        """Return the features (n, n_features) of inputs (n, size), float32."""
        return self.family.transform(self.images(values, are_bytes), None, n_jobs)

    def as_family(self, outputs: np.ndarray) -> FeatureFamily | None:
        """Return the family restricted to features, in this order."""
        return self.family.take(outputs)

    def take(self, outputs: np.ndarray) -> Selection:
        """Return the family restricted to features, in this order."""
        kept = FeatureLayer(self.in_shape, self.family.take(outputs))
        return Selection(kept, np.arange(len(outputs)))

    def groups(self, outputs: np.ndarray) -> np.ndarray | None:
        """Return the family's group of each feature."""
        groups = self.family.groups
        return None if groups is None else groups[outputs]

    def describe(self, output: int) -> dict[str, Any]:
        """Return what the family says of the feature."""
        return self.family.describe(output)

    def to_state(self) -> dict[str, Any]:
        """Return the family's plain values."""
        return {"family": self.family.to_state()[0]}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> FeatureLayer:
        inner = state.get("family")
        if not isinstance(inner, Mapping) or inner.get("family") == "network":
            raise InputError("family", "another description", "one of a family of features")
        family = family_from_state(inner, arrays)
        if raster_shape(family.image_shape_) != in_shape:
            raise InputError("family", family.image_shape_, f"a family of images {in_shape}")
        return cls(in_shape, family)

    def to_c(self, writer: Writer, inner: Unit) -> Unit:
        """Return the unit of the features, which hands them to another unit."""
        part = writer.add(self.family)
        values = {"part": part.name, "next": inner.name}
        from visionshare.codegen.c_writer import WorkArray

        work = {"values": WorkArray("float", max(1, self.family.n_features_))}
        return writer.unit(__file__, "features", {}, values, work, (part, inner))

    def to_onnx(self, images: str, graph: Graph) -> str:
        """Return the name of the features in a graph, (n, 1, 1, n_features)."""
        shape = graph.constant(np.array([0, *self.family.image_shape_]))
        values = graph.add_on(graph.node("Reshape", images, shape), self.family)
        return graph.node("Reshape", values, graph.constant(np.array([0, 1, 1, -1])))


class Features(_OfFamily, Layer):
    """A layer that computes the features of any family, such as patch templates or anchors.

    Parameters
    ----------
    family : FeatureFamily
        Unfitted.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> images = np.zeros((2, 3, 3, 1), np.float32)
    >>> Features(Pixels()).fit(images, None, np.random.default_rng(0)).out_shape
    (1, 1, 9)
    """

    def __init__(self, family: Any = None) -> None:
        self.family = family

    def check_parameters(self) -> None:
        if not isinstance(self.family, FeatureFamily):
            raise InputError("family", self.family, "a family such as PatchTemplates()")
        self.family.check_parameters()

    def fit(self, inputs: Any, y: np.ndarray | None, rng: np.random.Generator) -> FeatureLayer:
        """Return a fitted copy of the family."""
        shape = (int(inputs.shape[1]), int(inputs.shape[2]), int(inputs.shape[3]))
        return FeatureLayer(shape, unfitted_copy(self.family).fit(inputs, y))
