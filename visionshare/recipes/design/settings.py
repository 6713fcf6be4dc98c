"""What the design of a structure may vary, and how structures are tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from visionshare.errors import InputError
from visionshare.generators.layers.channels.formulas import COLORS, GRADIENTS
from visionshare.learners.fine_tuning.heads import HEADS
from visionshare.learners.parameters import check_fraction, check_whole_numbers

__all__ = ["MOST_LAYERS", "Design"]

# Layers of maps for which pools are bundled.
MOST_LAYERS = 2


@dataclass(frozen=True)
class Design:
    """What the design of a structure may vary, and how structures are tried."""

    n_layers: tuple[int, ...] = (0, 1, 2)
    n_maps: tuple[int, ...] = (4, 6, 8, 12, 16, 24, 32)
    map_sizes: tuple[int, ...] = (3, 5)
    pools: tuple[int, ...] = (1, 2, 3)
    patch_sizes: tuple[int, ...] = (3, 4, 5, 7)
    n_templates: tuple[int, ...] = (16, 24, 32, 48, 64, 96)
    grids: tuple[int, ...] = (2, 3, 4)
    heads: tuple[str, ...] = ("linear", "hidden", "low-rank")
    n_units: tuple[int, ...] = (16, 24, 32, 48, 64)
    deslanted: tuple[bool, ...] = (False,)
    channels: tuple[tuple[str, ...], ...] = ((),)
    max_features: int = 600
    least_use: float = 0.25
    templates_per_round: int = 2
    search_images: int = 2000
    n_patches: int = 20_000
    images: int = 10_000
    held_out: float = 1 / 6
    n_rungs: int = 3
    reduction: int = 3

    def __post_init__(self) -> None:
        _check_list("n_layers", self.n_layers, 0, MOST_LAYERS)
        _check_list("n_maps", self.n_maps, 1, 1024)
        _check_list("map_sizes", self.map_sizes, 1, 64)
        _check_list("pools", self.pools, 1, 11)
        _check_list("patch_sizes", self.patch_sizes, 1, 64)
        _check_list("n_templates", self.n_templates, 1, 10_000)
        _check_list("grids", self.grids, 1, 64)
        _check_list("n_units", self.n_units, 1, 10_000)
        _check_among("heads", self.heads, HEADS)
        _check_among("deslanted", self.deslanted, (False, True))
        _check_channels(self.channels)
        check_fraction("least_use", self.least_use, zero=True)
        check_fraction("held_out", self.held_out)
        check_whole_numbers(self, 1, "templates_per_round", "search_images", "n_patches", "images")
        check_whole_numbers(self, 1, "n_rungs", "max_features")
        check_whole_numbers(self, 2, "reduction")
        if self.n_rungs > 10:
            raise InputError("n_rungs", self.n_rungs, "a whole number from 1 to 10")


def _check_list(name: str, values: Sequence[int], least: int, most: int) -> None:
    """Check that values are one or more whole numbers of a range."""
    accepted = f"whole numbers from {least} to {most}"
    _check_some(name, values, accepted)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InputError(name, value, accepted)


def _check_among(name: str, values: Sequence[object], known: Sequence[object]) -> None:
    accepted = f"one or more of {', '.join(map(repr, known))}"
    _check_some(name, values, accepted)
    for value in values:
        if value not in known:
            raise InputError(name, value, accepted)


def _check_channels(values: Sequence[Sequence[str]]) -> None:
    known = (*COLORS, *GRADIENTS)
    _check_some("channels", values, f"lists of {', '.join(map(repr, known))}")
    for names in values:
        if len(names):
            _check_among("channels", names, known)


def _check_some(name: str, values: Sequence[object], accepted: str) -> None:
    if not isinstance(values, (list, tuple)) or not values:
        raise InputError(name, values, f"a list of {accepted}")
