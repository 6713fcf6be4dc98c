"""Residual sums in integers of few bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.integer_layer import whole_vector
from visionshare.generators.layers.layer import LayerCode
from visionshare.generators.layers.residual.layer import check_middles
from visionshare.generators.layers.states import check_sources
from visionshare.generators.layers.templates.integer_kernels import RESIDUAL
from visionshare.generators.layers.templates.integers import IntegerTemplates
from visionshare.generators.states import Arrays, State

#: Of a byte that is added to a sum: floats hold sums of 24 bits exactly.
LARGEST_LIFT = 14


@dataclass(frozen=True, eq=False)
class IntegerResidual(IntegerTemplates):
    """Rectified sums of weights, plus the byte in the middle of each patch; shifted, cut off.

    out[r, c, t] = min(255, shifted(max(0, image ⊗ weights_t + bias_t) + image_s · 2^lift_t, s_t))
    """

    sources: np.ndarray
    lifts: np.ndarray
    kind = "residual-int"
    in_vectors = False
    adds_input = True
    per_template = ("weights", "biases", "shifts", "sources", "lifts")
    code_kind = RESIDUAL

    def __post_init__(self) -> None:
        n = len(self.weights)
        if self.lifts.shape != (n,) or self.lifts.min() < 0 or self.lifts.max() > LARGEST_LIFT:
            raise InputError("lifts", self.lifts.tolist()[:20], f"{n} from 0 to {LARGEST_LIFT}")
        super().__post_init__()
        check_sources(self.sources, n, self.in_shape[2])
        check_middles(self)

    @property
    def most_added(self) -> int:
        return 255 << int(self.lifts.max())

    @property
    def steps(self) -> list[tuple[Any, LayerCode]]:
        return self._whole_steps

    @property
    def _tables(self) -> tuple[np.ndarray, ...]:
        return self.sources, self.lifts

    def source_tables(
        self, line: int, column: int, plane: int
    ) -> list[tuple[str, np.ndarray, str]]:
        """Return where the middle of a patch is, and shifts of what is added."""
        middles = self.size // 2 * (line + column) + self.sources
        return [("middles", middles, "uint16_t"), ("lifts", self.lifts, "uint8_t")]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Packed weights, biases, shifts, cells, channels and shifts of what is added."""
        own = {"sources": self.sources, "lifts": self.lifts}
        return super().arrays | {name: a.astype(np.int64) for name, a in own.items()}

    @classmethod
    def _values(cls, state: State, arrays: Arrays) -> dict[str, Any]:
        own = {name: whole_vector(arrays, name) for name in ("sources", "lifts")}
        return super()._values(state, arrays) | own
