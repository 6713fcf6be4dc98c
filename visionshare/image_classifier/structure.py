"""Structures: layers of maps, templates in cells on them, and a head; and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from visionshare.export.targets.flash import TableSize, estimated_flash
from visionshare.generators.layers.channels.formulas import COLORS, channel_names
from visionshare.generators.layers.channels.layer import Channels
from visionshare.generators.layers.deslant.layer import MACS_PER_VALUE
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.learners.fine_tuning.heads import UNITS

T = TypeVar("T")

#: Other structures of the same layers: a residual sum after the maps; strides in place of cells;
#: depthwise templates before templates of one pixel; means over the plane in place of a grid of
#: cells.
VARIANTS = ("residual", "strided", "depthwise", "means")
_N_ORIENTATIONS = 6
# The side of templates of residual sums.
_SIDE_OF_SUMS = 3
# Bytes of a learned number, and of the number of a feature.
_FLOAT = 4
_ID = 8


@dataclass(frozen=True)
class MapLayer:
    """A layer of learned maps: how many, the side of their templates, and that of their cells.

    Examples
    --------
    >>> str(MapLayer(8, 3, 2))
    '8 maps 3x3/2'
    """

    n_maps: int
    size: int
    pool: int

    def __str__(self) -> str:
        return f"{self.n_maps} maps {self.size}x{self.size}/{self.pool}"


@dataclass(frozen=True)
class Structure:
    """What a classifier is made of, before anything is learned.

    Examples
    --------
    >>> structure = Structure((MapLayer(4, 5, 2),), 3, 48, 2, "hidden", 24, False)
    >>> print(structure)
    4 maps 5x5/2, 48 templates 3x3 in 2x2 cells, 24 hidden units
    >>> structure.fits((28, 28, 1)), structure.fits((8, 8, 1))
    (True, False)
    """

    #: From the image on; none where templates see the image itself.
    layers: tuple[MapLayer, ...]
    #: Templates on the last maps: side, number, and cells a side.
    patch_size: int
    n_templates: int
    grid: int
    head: str = "linear"
    #: Units of the head; 0 for "linear".
    n_units: int = 0
    deslanted: bool = False
    #: Channels that the first layer sees, see :class:`visionshare.Channels`; none for the image
    #: itself, and where slant is taken out.
    channels: tuple[str, ...] = ()
    #: One of ``VARIANTS``, or nothing.
    variant: str = ""

    def __str__(self) -> str:
        q = self.patch_size
        g = self.grid
        parts = ["deslanted"] if self.deslanted else []
        if self.channels:
            parts.append("+".join(self.channels))
        parts += map(str, self.layers)
        parts.append(f"{self.n_templates} templates {q}x{q} in {g}x{g} cells")
        parts += [self.variant] if self.variant else []
        if self.head in UNITS:
            parts.append(f"{self.n_units} {self.head} units")
        return ", ".join(parts)

    @property
    def n_features(self) -> int:
        """Features: one for each template and cell."""
        return self.n_templates * (1 if self.variant == "means" else self.grid**2)

    def costs(self, raster: tuple[int, int, int]) -> list[LayerCost]:
        """Return what each layer of templates costs and gives."""
        rows, cols, n_channels = raster
        if self.channels:
            n_channels = len(channel_names(self.channels, _N_ORIENTATIONS))
        shape = (rows, cols, n_channels)
        found = []
        for layer in self._templates(1, 1):
            found.append(LayerCost.of(layer, shape))
            shape = found[-1].shape
        return found

    def fits(self, raster: tuple[int, int, int]) -> bool:
        """Return whether images have the channels, and each cell a position of its own."""
        colors = any(name in COLORS and name != "gray" for name in self.channels)
        if colors and raster[2] != 3:
            return False
        if self.channels and (self.deslanted or raster[2] not in (1, 3)):
            return False
        if not self.layers and self.variant not in ("", "means"):
            return False
        least = 1 if self.variant == "means" else self.grid
        return min(self.costs(raster)[-1].positions) >= least

    def features(self, templates_per_round: int, n_patches: int) -> dict[str, Any]:
        """Return the section [features] of a recipe."""
        layers: list[dict[str, Any]] = []
        if self.channels:
            own = {"channels": list(self.channels), "n_orientations": _N_ORIENTATIONS}
            layers.append({"kind": "channels", **own})
        elif self.deslanted:
            layers.append({"kind": "deslant"})
        layers += self._templates(templates_per_round, n_patches)
        return {"pool": "network", "parameters": {"layers": layers}}

    def _templates(self, templates_per_round: int, n_patches: int) -> list[dict[str, Any]]:
        """Return the layers of templates, as a recipe says them."""
        found: list[dict[str, Any]] = []
        patches = {"n_patches": n_patches}
        for number, layer in enumerate(self.layers):
            cells = {"pool": layer.pool}
            if self.variant == "strided":
                cells = {"stride": layer.pool}
            found += self._separated(layer.n_maps, layer.size, cells | patches, first=number == 0)
        if self.variant == "residual":
            found.append({"kind": "residual", "size": _SIDE_OF_SUMS, **patches})
        cells = {} if self.variant == "means" else {"grid": self.grid}
        n = self.n_templates * templates_per_round
        found += self._separated(n, self.patch_size, cells | patches, first=not self.layers)
        return found + ([{"kind": "means"}] if self.variant == "means" else [])

    def _separated(
        self, n: int, size: int, others: dict[str, Any], *, first: bool
    ) -> list[dict[str, Any]]:
        """Return a layer of templates, or depthwise ones and then templates of one pixel."""
        layers: list[dict[str, Any]] = []
        if self.variant == "depthwise" and not first:
            patches = {"contrast": "unit", "n_patches": others["n_patches"]}
            layers.append({"kind": "depthwise", "size": size, **patches})
            size = 1
        return [*layers, {"kind": "templates", "n_templates": n, "size": size, **others}]


class LayerCost(NamedTuple):
    """What a layer costs: templates, taps of each, multiply-accumulates; and its output."""

    n_templates: int
    #: 0 where nothing is learned.
    n_taps: int
    macs: int
    #: Rows and columns of positions.
    positions: tuple[int, int]
    shape: tuple[int, int, int]

    @staticmethod
    def of(layer: dict[str, Any], raster: tuple[int, int, int]) -> LayerCost:
        """Return the cost of a layer, as a recipe says it, on images."""
        rows, cols, channels = raster
        if layer["kind"] == "means":
            return LayerCost(channels, 0, rows * cols * channels, (rows, cols), (1, 1, channels))
        q = layer["size"]
        taps = q**2 * (1 if layer["kind"] == "depthwise" else channels)
        n = layer.get("n_templates", channels)
        if layer["kind"] == "residual":
            return LayerCost(n, taps, rows * cols * n * (taps + 1), (rows, cols), raster)
        positions = (max(0, rows - q + 1), max(0, cols - q + 1))
        if "grid" in layer:
            cells = (layer["grid"], layer["grid"], n)
            return LayerCost(n, taps, positions[0] * positions[1] * n * taps, positions, cells)
        pool = layer.get("pool", 1)
        down, across = (-(-side // layer.get("stride", 1)) // pool for side in positions)
        macs = down * across * pool**2 * n * taps
        return LayerCost(n, taps, macs, positions, (down, across, n))


class Cost(NamedTuple):
    """What prediction costs."""

    #: Multiply-accumulates per image.
    macs: int
    #: Bytes of all arrays, as ``CompactClassifier.nbytes``.
    nbytes: int


def cost_of(
    structure: Structure, raster: tuple[int, int, int], n_classes: int, members: int = 1
) -> Cost:
    """Return the cost of the classifiers of a structure, which has to fit the images.

    Examples
    --------
    >>> cost_of(Structure((), 3, 10, 2), (8, 8, 1), 5)
    Cost(macs=3440, nbytes=1540)
    """
    height, width, channels = raster
    macs = 0
    parameters = 0
    # 1) what is done to the image
    if structure.deslanted:
        macs += MACS_PER_VALUE * height * width * channels
    if structure.channels:
        macs += Channels(structure.channels, _N_ORIENTATIONS).of_shape(raster).macs()
    # 2) layers of templates
    for layer in structure.costs(raster):
        macs += layer.macs
        parameters += layer.n_templates * (layer.n_taps + 1) if layer.n_taps else 0
    # 3) the head
    n_features = structure.n_features
    if structure.head in UNITS:
        n_units = structure.n_units
        macs += n_features * n_units + n_units * n_classes
        if UNITS[structure.head] == "square":
            macs += n_units
        parameters += n_features * n_units + n_units + n_units * n_classes + n_classes
        n_features = n_units
    else:
        macs += n_features * n_classes
        parameters += n_features * n_classes + n_classes
    # Where each feature is in the last layer's output; a mean also keeps whose feature it is.
    nbytes = _FLOAT * parameters + _ID * n_features
    if members > 1:
        nbytes += _ID * n_features
    return Cost(members * macs, members * nbytes)


def flash_of(structure: Structure, raster: tuple[int, int, int], n_classes: int, bits: Bits) -> int:
    """Return about the flash of a structure's classifiers in whole numbers, code included.

    Examples
    --------
    >>> flash_of(Structure((), 3, 10, 2), (8, 8, 1), 5, Bits(4, 4))
    1370
    """
    tables = [
        TableSize(layer.n_templates, max(1, layer.n_taps), bits.templates)
        for layer in structure.costs(raster)
    ]
    values = structure.n_features
    if structure.head in UNITS:
        tables.append(TableSize(structure.n_units, values, bits.weights))
        values = structure.n_units
    tables.append(TableSize(n_classes, values, bits.weights))
    return estimated_flash(tables, structure.deslanted, UNITS.get(structure.head) == "square")


def random_structures(
    seed: int, deslanted: bool = False, channels: tuple[str, ...] = ()
) -> Iterator[Structure]:
    """Yield structures at random without an end, whether they fit anything or not.

    Examples
    --------
    >>> next(random_structures(0)) == next(random_structures(0))
    True
    """
    rng = np.random.default_rng([seed, 3])

    def one_of(values: Sequence[T]) -> T:
        return values[int(rng.integers(len(values)))]

    while True:
        layers = []
        for _ in range(one_of((0, 1, 2))):
            n_maps = one_of((4, 6, 8, 12, 16, 24, 32))
            layers.append(MapLayer(n_maps, size=one_of((3, 5)), pool=one_of((1, 2, 3))))
        head = one_of(("linear", "hidden", "low-rank"))
        n_units = one_of((16, 24, 32, 48, 64))
        yield Structure(
            layers=tuple(layers),
            patch_size=one_of((3, 4, 5, 7)),
            n_templates=one_of((16, 24, 32, 48, 64, 96)),
            grid=one_of((2, 3, 4)),
            head=head,
            n_units=n_units if head in UNITS else 0,
            deslanted=deslanted,
            channels=channels,
        )
