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

_N_ORIENTATIONS = 6
# Bytes of a learned number, and of the number of a feature.
_FLOAT = 4
_ID = 8


@dataclass(frozen=True)
class MapLayer:
    """A layer of learned maps: how many, the side of their templates, and that of their cells.

    Examples
    --------
    >>> str(MapLayer(8, 3, 2)), MapLayer(8, 3, 2).seen((28, 28, 1))
    ('8 maps 3x3/2', (13, 13, 8))
    """

    n_maps: int
    size: int
    pool: int

    def __str__(self) -> str:
        return f"{self.n_maps} maps {self.size}x{self.size}/{self.pool}"

    def seen(self, raster: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return rows, columns and number of the maps of an image; none where it is too small."""
        rows, cols = (max(0, side - self.size + 1) // self.pool for side in raster[:2])
        return rows, cols, self.n_maps


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

    def __str__(self) -> str:
        q = self.patch_size
        g = self.grid
        parts = ["deslanted"] if self.deslanted else []
        if self.channels:
            parts.append("+".join(self.channels))
        parts += map(str, self.layers)
        parts.append(f"{self.n_templates} templates {q}x{q} in {g}x{g} cells")
        if self.head in UNITS:
            parts.append(f"{self.n_units} {self.head} units")
        return ", ".join(parts)

    @property
    def n_features(self) -> int:
        """Features: one for each template and cell."""
        return self.n_templates * self.grid**2

    def rasters(self, raster: tuple[int, int, int]) -> list[tuple[int, int, int]]:
        """Return rows, columns and channels of what the first layer sees, and of each layer."""
        rows, cols, n_channels = raster
        if self.channels:
            n_channels = len(channel_names(self.channels, _N_ORIENTATIONS))
        rasters = [(rows, cols, n_channels)]
        for layer in self.layers:
            rasters.append(layer.seen(rasters[-1]))
        return rasters

    def positions(self, raster: tuple[int, int, int]) -> tuple[int, int]:
        """Return rows and columns of the positions of a template."""
        rows, cols, _ = self.rasters(raster)[-1]
        return rows - self.patch_size + 1, cols - self.patch_size + 1

    def fits(self, raster: tuple[int, int, int]) -> bool:
        """Return whether images have the channels, and each cell a position of its own."""
        colors = any(name in COLORS and name != "gray" for name in self.channels)
        if colors and raster[2] != 3:
            return False
        if self.channels and (self.deslanted or raster[2] not in (1, 3)):
            return False
        return min(self.positions(raster)) >= self.grid

    def features(self, templates_per_round: int, n_patches: int) -> dict[str, Any]:
        """Return the section [features] of a recipe."""
        layers: list[dict[str, Any]] = []
        if self.channels:
            own = {"channels": list(self.channels), "n_orientations": _N_ORIENTATIONS}
            layers.append({"kind": "channels", **own})
        elif self.deslanted:
            layers.append({"kind": "deslant"})
        for layer in self.layers:
            own = {"n_templates": layer.n_maps, "size": layer.size, "pool": layer.pool}
            layers.append({"kind": "templates", **own, "n_patches": n_patches})
        last = {
            "n_templates": self.n_templates * templates_per_round,
            "size": self.patch_size,
            "grid": self.grid,
            "n_patches": n_patches,
        }
        layers.append({"kind": "templates", **last})
        return {"pool": "network", "parameters": {"layers": layers}}


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
    # 2) layers of maps
    rasters = structure.rasters(raster)
    for layer, below, maps in zip(structure.layers, rasters, rasters[1:], strict=False):
        taps = layer.n_maps * layer.size**2 * below[2]
        macs += maps[0] * maps[1] * layer.pool**2 * taps
        parameters += taps + layer.n_maps
    # 3) templates in cells
    rows, cols = structure.positions(raster)
    taps = structure.n_templates * structure.patch_size**2 * rasters[-1][2]
    macs += rows * cols * taps
    parameters += taps + structure.n_templates
    # 4) the head
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
    rasters = structure.rasters(raster)
    tables = []
    for layer, below in zip(structure.layers, rasters, strict=False):
        tables.append(TableSize(layer.n_maps, layer.size**2 * below[2], bits.templates))
    taps = structure.patch_size**2 * rasters[-1][2]
    tables.append(TableSize(structure.n_templates, taps, bits.templates))
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
