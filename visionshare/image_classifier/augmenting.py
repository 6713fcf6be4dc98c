"""How copies of training images may differ, in proportion to their size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from visionshare.datasets import Augmentation
from visionshare.image_classifier.proposals import Data

Named = tuple[Augmentation, str]
_STILL: dict[str, Any] = {"alpha": 0.0, "rotation": 0.0, "scale": 0.0, "shear": 0.0}
# Shares of the smaller side.
_SHIFT = 1 / 12
_WIDTH_OF_ELASTIC = 1 / 7


def _pixels(data: Data) -> int:
    return max(1, round(min(data.raster[:2]) * _SHIFT))


def _border(data: Data) -> str:
    return "reflect" if min(data.raster[:2]) > _pixels(data) else "zero"


def shifted(data: Data) -> Named:
    """Return shifts alone."""
    return Augmentation(**_STILL, shift=_pixels(data), border=_border(data)), "shifts"


def deformed(data: Data) -> Named:
    """Return small rotations, changes of size and shears; of glyphs, elastic ones too."""
    side = min(data.raster[:2])
    # Elastic maps of a few pixels are noise.
    is_elastic = data.is_glyphs and side >= 16
    made = Augmentation(
        alpha=side / 28 if is_elastic else 0.0,
        sigma=max(1.0, side * _WIDTH_OF_ELASTIC),
        rotation=8.0,
        scale=0.1,
        shear=0.1,
        shift=max(1, _pixels(data) // 2),
        border=_border(data),
    )
    return made, "deformations"


def mirrored(augmentation: Augmentation | None, words: str) -> Named:
    """Return the same, and left and right change places."""
    if augmentation is None:
        return Augmentation(**_STILL, flip=0.5), "mirrors"
    return replace(augmentation, flip=0.5), f"{words}, mirrors"


def colored(augmentation: Augmentation | None, words: str) -> Named:
    """Return the same, and brightness, contrast and colors change."""
    changes: dict[str, Any] = {"brightness": 0.2, "contrast": 0.2, "saturation": 0.2}
    if augmentation is None:
        return Augmentation(**_STILL, **changes), "colors"
    return replace(augmentation, **changes), f"{words}, colors"
