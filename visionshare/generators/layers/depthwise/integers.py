"""Depthwise templates in integers of few bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.generators.layers.depthwise.layer import DepthwiseLayer
from visionshare.generators.layers.integer_layer import whole_vector
from visionshare.generators.layers.states import check_sources
from visionshare.generators.layers.templates.cells import OneChannelTemplates
from visionshare.generators.layers.templates.integer_kernels import DEPTHWISE
from visionshare.generators.layers.templates.integers import IntegerTemplates
from visionshare.generators.layers.templates.layer import TemplateLayer
from visionshare.generators.states import Arrays, State


@dataclass(frozen=True, eq=False)
class IntegerDepthwise(OneChannelTemplates, IntegerTemplates):
    """Templates (n, q, q, 1) that see one channel each; otherwise as :class:`IntegerTemplates`."""

    sources: np.ndarray
    kind = "depthwise-int"
    in_vectors = False
    of_one_channel = True
    per_template = ("weights", "biases", "shifts", "sources")
    code_kind = DEPTHWISE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sources(self.sources, len(self.weights), self.in_shape[2])

    @property
    def depth(self) -> int:
        return 1

    @property
    def _in_floats(self) -> TemplateLayer:
        return DepthwiseLayer(**self._float_values(), sources=self.sources)

    @property
    def _tables(self) -> tuple[np.ndarray, ...]:
        return (self.sources,)

    def source_tables(
        self, line: int, column: int, plane: int
    ) -> list[tuple[str, np.ndarray, str]]:
        """Return where the channel of each template begins."""
        return [("sources", self.sources * plane, "uint16_t")]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Packed weights, biases, shifts, cells and channels."""
        return super().arrays | {"sources": self.sources.astype(np.int64)}

    @classmethod
    def _values(cls, state: State, arrays: Arrays) -> dict[str, Any]:
        return super()._values(state, arrays) | {"sources": whole_vector(arrays, "sources")}
