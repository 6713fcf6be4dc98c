"""Flash of a whole-number classifier on a small core: counted, or estimated without a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.errors import InputError
from visionshare.generators.layers.integers.packing import packed_bytes
from visionshare.generators.layers.integers.rounding import FORMATS
from visionshare.generators.layers.network import Network

#: The core whose flash budgets are about.
FLASH_TARGET = "cortex-m4"
# Bytes of code compiled for size; a little more than structures of any kind took.
_CODE = 800
_CODE_OF_LAYER = 345
_CODE_OF_FURTHER_LAYER = 100
_CODE_OF_DESLANTING = 400
_CODE_OF_SQUARES = 360
_BIAS = 4
_SHIFT = 1


class TableSize(NamedTuple):
    """Templates of a layer: how many, how many numbers each has, and their bits."""

    n: int
    length: int
    bits: int | str

    @property
    def nbytes(self) -> int:
        """Bytes of the table, with biases and shifts."""
        return self.n * (packed_bytes(self.length, self.bits) + _BIAS + _SHIFT)


def flash_bytes(classifier: CompactClassifier) -> int:
    """Return the flash of a whole-number classifier on a Cortex-M4, code included.

    It is what ``visionshare measure --target cortex-m4 --max-flash`` counts, compiled for size;
    where the packages ziglang and pyelftools are missing, :func:`estimated_flash`.

    Raises
    ------
    InputError
        If the classifier was not learned in whole numbers.
    ExportError
        If its C does not compile.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import Network, Templates
    >>> from visionshare.classifier import quantize
    >>> images = np.random.default_rng(0).integers(0, 256, (50, 8, 8), np.uint8)
    >>> family = Network([Templates(8, 3, grid=2, n_patches=500)]).fit(images)
    >>> model = CompactClassifier(family, np.ones((2, 32)), np.zeros(2), np.array(["a", "b"]))
    >>> model = quantize(model, images, bits=4)
    >>> 500 < flash_bytes(model) < 1500
    True
    """
    if not (isinstance(classifier.family, Network) and classifier.family.in_whole_numbers):
        accepted = "a classifier that was learned in whole numbers"
        raise InputError("classifier", type(classifier.family).__name__, accepted)
    if find_spec("ziglang") is None or find_spec("elftools") is None:
        weights = classifier.weights
        bits = next((bits for bits in ("ternary", 2, 4) if FORMATS[bits].holds(weights)), 8)
        table = TableSize(len(weights), int(np.prod(classifier.family.layers_[-1].out_shape)), bits)
        return family_flash(classifier.family, [table])
    from visionshare.export.c.program import c_program
    from visionshare.export.targets.compiling import compile_and_link
    from visionshare.export.targets.device_sources import device_sources
    from visionshare.export.targets.linked import read_image
    from visionshare.export.targets.table import TARGETS

    sources = device_sources(classifier, c_program(classifier))
    linked, _ = compile_and_link(sources, TARGETS[FLASH_TARGET], "size")
    return read_image(linked).flash


def family_flash(family: Network, after: Sequence[TableSize], squares: bool = False) -> int:
    """Return the estimated flash of a family and tables after it, at last that of the classes."""
    layers: list[Any] = family.layers_
    weighted = [layer for layer in layers if layer.weighted]
    tables = [
        TableSize(len(layer.weights), layer.weights[0].size, layer.bits) for layer in weighted
    ]
    squares = squares or any(layer.square for layer in weighted)
    deslanted = any(layer.integer_rank == 0 for layer in layers)
    return estimated_flash([*tables, *after], deslanted, squares)


def estimated_flash(tables: Sequence[TableSize], deslanted: bool, squares: bool) -> int:
    """Return about the flash of a whole-number program: no less than it takes."""
    # All layers share one function: the second one and the scores make it longer, others do not.
    further = max(0, len(tables) - 3)
    code = _CODE + _CODE_OF_LAYER * (len(tables) - 1 - further) + _CODE_OF_FURTHER_LAYER * further
    code += _CODE_OF_DESLANTING * deslanted + _CODE_OF_SQUARES * squares
    return code + sum(table.nbytes for table in tables)
