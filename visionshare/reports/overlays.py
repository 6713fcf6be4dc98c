"""Explanations drawn on pictures: red supports a class, blue another one."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.classifier import Explanation
from visionshare.datasets.canvas import to_gray
from visionshare.errors import InputError
from visionshare.reports.encoding import rgb_picture

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_FOR = (178, 24, 43)
_AGAINST = (33, 102, 172)
_WHITE = (255, 255, 255)
# Opacity of the largest evidence.
_OPACITY = 0.75


def overlay_picture(
    picture: np.ndarray,
    explanation: Explanation,
    name: Any = None,
    top: int = 10,
    side: int = 560,
) -> np.ndarray:
    """Return a picture twice: with boxes of the features that count most, and with all evidence."""
    from PIL import Image, ImageDraw

    shown = rgb_picture(picture)
    if shown.shape[:2] != explanation.size:
        raise InputError("picture", shown.shape, f"one of {explanation.size} pixels")
    k = explanation.class_index(name)
    # 1) The picture and the boxes at the size that is drawn.
    factor = side / max(explanation.size)
    height, width = (max(1, round(length * factor)) for length in explanation.size)
    method = Image.Resampling.NEAREST if factor > 1 else Image.Resampling.BOX
    canvas = Image.fromarray(shown).resize((width, height), method)
    scaled = explanation.scaled((height, width))
    # 2) All evidence.
    tinted = _tinted(np.asarray(canvas), scaled.evidence_map(k))
    # 3) Boxes, then their numbers above all boxes. What saw the whole image has none.
    ranked = enumerate(scaled.top_features(k, top).tolist(), 1)
    boxed = [(rank, j) for rank, j in ranked if not scaled.everywhere[j]]
    colors = {j: _FOR if scaled.evidence[k, j] > 0 else _AGAINST for _, j in boxed}
    draw = ImageDraw.Draw(canvas)
    line = max(1, side // 250)
    for _, j in reversed(boxed):
        first_row, end_row, first_col, end_col = np.rint(scaled.boxes[j]).astype(int).tolist()
        last = (max(first_col, end_col - 1), max(first_row, end_row - 1))
        draw.rectangle((first_col, first_row, *last), outline=_WHITE, width=line + 2)
        draw.rectangle((first_col, first_row, *last), outline=colors[j], width=line)
    label = side / 28
    taken: list[tuple[float, float]] = []
    for rank, j in boxed:
        taken.append(_free_place(scaled.boxes[j], label, taken))
        _draw_label(draw, taken[-1], label, str(rank), colors[j])
    gap = np.full((height, max(4, side // 60), 3), 255, np.uint8)
    return np.concatenate([np.asarray(canvas), gap, tinted], axis=1)


def _free_place(
    box: np.ndarray, label: float, taken: list[tuple[float, float]]
) -> tuple[float, float]:
    """Return where the number of a box stands, x and y: where no other number stands, if it can."""
    top, bottom, left, right = box.tolist()
    ys = np.arange(top, max(top, bottom - label) + 1e-9, label).tolist()
    xs = np.arange(left, max(left, right - label) + 1e-9, label).tolist()
    for y, x in product(ys, xs):
        if all(abs(x - a) >= label or abs(y - b) >= label for a, b in taken):
            return x, y
    return left, top


def _draw_label(
    draw: ImageDraw,
    place: tuple[float, float],
    side: float,
    text: str,
    color: tuple[int, int, int],
) -> None:
    from PIL import ImageFont

    x, y = place
    draw.rectangle((x, y, x + side, y + side), fill=color, outline=_WHITE)
    middle = (x + side / 2, y + side / 2)
    draw.text(middle, text, fill=_WHITE, font=ImageFont.load_default(side * 0.7), anchor="mm")


def _tinted(picture: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """Return a picture in gray, red where there is evidence for a class, blue against it."""
    largest = float(np.abs(evidence).max(initial=0)) or 1.0
    share = (evidence / largest)[..., None]
    # Neither black nor white, so that both colors show.
    gray = 64 + 0.6 * to_gray(picture)[..., None].astype(np.float64)
    color = np.where(share > 0, _FOR, _AGAINST)
    opacity = _OPACITY * np.abs(share)
    return np.rint(gray * (1 - opacity) + color * opacity).astype(np.uint8)
