"""Structures: layers of maps, templates in cells on them, and a head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from visionshare.generators.layers.channels.formulas import COLORS, channel_names
from visionshare.generators.layers.channels.layer import Channels
from visionshare.learners.fine_tuning.heads import UNITS

__all__ = ["MapLayer", "Structure"]

_N_ORIENTATIONS = 6


@dataclass(frozen=True)
class MapLayer:
    """A layer of learned maps: how many, the side of their templates, and that of their cells."""

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
    """What a classifier is made of, before anything is learned."""

    layers: tuple[MapLayer, ...]
    patch_size: int
    n_templates: int
    grid: int
    head: str
    n_units: int
    deslanted: bool
    channels: tuple[str, ...] = ()

    def __str__(self) -> str:
        q, g = self.patch_size, self.grid
        parts = [*(["deslanted"] if self.deslanted else [])]
        parts += ["+".join(self.channels)] if self.channels else []
        parts += map(str, self.layers)
        parts.append(f"{self.n_templates} templates {q}x{q} in {g}x{g} cells")
        if self.head in UNITS:
            parts.append(f"{self.n_units} {self.head} units")
        elif self.head != "linear":
            parts.append(self.head)
        return ", ".join(parts)

    @property
    def n_features(self) -> int:
        """Features: one for each template and cell."""
        return self.n_templates * self.grid**2

    def rasters(self, raster: tuple[int, int, int]) -> list[tuple[int, int, int]]:
        """Return rows, columns and channels of what the first layer sees, and of each layer."""
        rasters = [self.seen(raster)]
        for layer in self.layers:
            rasters.append(layer.seen(rasters[-1]))
        return rasters

    def seen(self, raster: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return rows, columns and channels of what the first layer sees of an image."""
        rows, cols, _ = raster
        if not self.channels:
            return raster
        return rows, cols, len(channel_names(self.channels, _N_ORIENTATIONS))

    def channels_macs(self, raster: tuple[int, int, int]) -> int:
        """Return the multiply-accumulates of an image's channels."""
        if not self.channels:
            return 0
        return Channels(self.channels, _N_ORIENTATIONS).of_shape(raster).macs()

    def positions(self, raster: tuple[int, int, int]) -> tuple[int, int]:
        """Return rows and columns of the positions of a template, of an image that it fits."""
        rows, cols, _ = self.rasters(raster)[-1]
        return rows - self.patch_size + 1, cols - self.patch_size + 1

    def fits(self, raster: tuple[int, int, int]) -> bool:
        """Return whether maps of an image have a pixel, and each cell a position of its own."""
        # Images have to have the channels too.
        colors = any(name in COLORS and name != "gray" for name in self.channels)
        lacking = (colors and raster[2] != 3) or (bool(self.channels) and raster[2] not in (1, 3))
        if lacking or (self.channels and self.deslanted):
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
