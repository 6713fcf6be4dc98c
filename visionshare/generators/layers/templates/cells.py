"""What layers of templates share, in floats and in integers: cells, and restriction to outputs."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from visionshare.generators.layers.layer import Fitted, Selection, Shape


class CellTemplates(Fitted):
    """Templates whose largest responses in cells are kept."""

    #: Arrays of one row per template; the first ones are the templates.
    per_template: ClassVar[tuple[str, ...]]
    in_shape: Shape
    #: Zero rows above and below, and zero columns at the sides.
    pads: tuple[int, int]
    #: The cell of each row of positions, and of each column; −1 for none.
    row_cells: np.ndarray
    col_cells: np.ndarray

    @property
    def _taps(self) -> np.ndarray:
        return getattr(self, self.per_template[0])

    @property
    def n_templates(self) -> int:
        return len(self._taps)

    @property
    def size(self) -> int:
        """Side of a template in pixels."""
        return int(self._taps.shape[1])

    @cached_property
    def out_shape(self) -> Shape:
        """Rows and columns of cells, and the number of templates."""
        return int(self.row_cells.max()) + 1, int(self.col_cells.max()) + 1, self.n_templates

    def groups(self, outputs: np.ndarray) -> np.ndarray | None:
        """Return the template of each output: its cells are chosen together."""
        return outputs % self.n_templates

    def take(self, outputs: np.ndarray) -> Selection:
        """Return the layer with the templates and cells in use, and where the outputs are then."""
        _, across, n = self.out_shape
        used, templates = np.unique(outputs % n, return_inverse=True)
        kept: dict[str, Any] = {name: getattr(self, name)[used] for name in self.per_template}
        # Rows and columns of cells that no output needs are in no cell afterwards.
        numbers = []
        for name, wanted in (
            ("row_cells", outputs // n // across),
            ("col_cells", outputs // n % across),
        ):
            cells, number = np.unique(wanted, return_inverse=True)
            before = getattr(self, name)
            new = np.full(int(before.max()) + 2, -1)
            new[cells] = np.arange(len(cells))
            kept[name] = new[before]
            numbers.append(number.reshape(-1))
        smaller: Any = replace(self, **kept)  # type: ignore[type-var]
        _, across, n = smaller.out_shape
        places = (numbers[0] * across + numbers[1]) * n + templates.reshape(-1)
        return Selection(smaller, places)


class OneChannelTemplates(CellTemplates):
    """Templates that see one channel each."""

    reads_some_channels = True
    #: The channel that each template sees.
    sources: np.ndarray

    def take(self, outputs: np.ndarray) -> Selection:
        """Return the templates in use, and the channels that they see."""
        smaller, places, _ = super().take(outputs)
        return Selection(smaller, places, np.unique(smaller.sources))  # type: ignore[attr-defined]

    def take_channels(self, channels: np.ndarray) -> Any:
        in_shape = (*self.in_shape[:2], len(channels))
        sources = np.searchsorted(channels, self.sources)
        return replace(self, in_shape=in_shape, sources=sources)  # type: ignore[type-var]
