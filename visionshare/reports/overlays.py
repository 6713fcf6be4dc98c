"""Explanations drawn on pictures: where features responded, for a class in red, against in blue."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from visionshare.classifier import Explanation
from visionshare.datasets.canvas import to_gray
from visionshare.errors import InputError

if TYPE_CHECKING:
    from PIL import ImageDraw

__all__ = ["Mark", "marks", "overlay_picture", "overlay_svg", "png_source", "rgb_picture"]

_FOR, _AGAINST = (178, 24, 43), (33, 102, 172)
# Opacity of the strongest evidence.
_OPACITY = 0.75


class Mark(NamedTuple):
    """One of the strongest features, as it is drawn and listed."""

    rank: int
    feature: int
    amount: float
    everywhere: bool

    @property
    def color(self) -> tuple[int, int, int]:
        """Red for the class, blue against it."""
        return _FOR if self.amount > 0 else _AGAINST


def marks(explanation: Explanation, name: Any = None, top: int = 10) -> list[Mark]:
    """Return the strongest features for or against a class, strongest first."""
    evidence = explanation.evidence[explanation.class_index(name)]
    return [
        Mark(rank, int(j), float(evidence[j]), bool(explanation.everywhere[j]))
        for rank, j in enumerate(explanation.strongest(name, top), 1)
    ]


def overlay_picture(
    picture: np.ndarray,
    explanation: Explanation,
    name: Any = None,
    top: int = 10,
    side: int = 560,
) -> np.ndarray:
    """Return a picture twice: with boxes of the strongest features, and with all evidence."""
    # Red speaks for the class, blue against it; boxes have the ranks of :func:`marks`. The
    # evidence of a feature lies evenly on its box.
    from PIL import Image, ImageDraw

    shown = rgb_picture(picture)
    if shown.shape[:2] != explanation.size:
        raise InputError("picture", shown.shape, f"one of {explanation.size} pixels")
    factor = side / max(explanation.size)
    height, width = (max(1, round(length * factor)) for length in explanation.size)
    method = Image.Resampling.NEAREST if factor > 1 else Image.Resampling.BOX
    canvas = Image.fromarray(shown).resize((width, height), method)
    scaled = explanation.scaled((height, width))
    tinted = _tinted(np.asarray(canvas), scaled.relief(name))
    drawn = [mark for mark in marks(scaled, name, top) if not mark.everywhere]
    draw, line = ImageDraw.Draw(canvas), max(1, side // 250)
    for mark in reversed(drawn):
        _draw_box(draw, scaled.boxes[mark.feature], mark, line)
    label = side / 28
    for mark, (x, y) in zip(drawn, _label_places(scaled, drawn, label), strict=True):
        _draw_label(draw, (x, y), mark, label)
    gap = np.full((height, max(4, side // 60), 3), 255, np.uint8)
    return np.concatenate([np.asarray(canvas), gap, tinted], axis=1)


def _draw_box(draw: ImageDraw.ImageDraw, box: np.ndarray, mark: Mark, line: int) -> None:
    top, bottom, left, right = (int(edge) for edge in np.rint(box))
    corners = (left, top, max(left, right - 1), max(top, bottom - 1))
    draw.rectangle(corners, outline=(255, 255, 255), width=line + 2)
    draw.rectangle(corners, outline=mark.color, width=line)


def _draw_label(
    draw: ImageDraw.ImageDraw, place: tuple[float, float], mark: Mark, label: float
) -> None:
    from PIL import ImageFont

    x, y = place
    draw.rectangle((x, y, x + label, y + label), fill=mark.color, outline=(255, 255, 255))
    font, middle = ImageFont.load_default(label * 0.7), (x + label / 2, y + label / 2)
    draw.text(middle, str(mark.rank), fill=(255, 255, 255), font=font, anchor="mm")


def _label_places(
    explanation: Explanation, drawn: Sequence[Mark], label: float, unit: float = 1.0
) -> list[tuple[float, float]]:
    """Return where the numbers of boxes stand, x and y: on an edge, and not on each other."""
    taken: list[tuple[float, float]] = []
    for mark in drawn:
        top, bottom, left, right = unit * explanation.boxes[mark.feature]
        across = np.arange(left, max(left, right - label) + 1e-9, label)
        down = np.arange(top, max(top, bottom - label) + 1e-9, label)
        last_x, last_y = max(left, right - label), max(top, bottom - label)
        tried = [*((x, top) for x in across), *((last_x, y) for y in down)]
        tried += [*((x, last_y) for x in across), *((left, y) for y in down)]
        free = (
            (x, y)
            for x, y in tried
            if all(abs(x - a) >= label or abs(y - b) >= label for a, b in taken)
        )
        taken.append(next(free, tried[0]))
    return taken


def _tinted(picture: np.ndarray, relief: np.ndarray) -> np.ndarray:
    """Return a picture in gray, red where there is evidence for a class, blue against it."""
    largest = float(np.abs(relief).max(initial=0)) or 1.0
    share = (relief / largest)[..., None]
    # Neither black nor white, so that both colors show.
    gray = 64 + 0.6 * to_gray(picture)[..., None].astype(np.float64)
    color = np.where(share > 0, _FOR, _AGAINST)
    opacity = _OPACITY * np.abs(share)
    return np.rint(gray * (1 - opacity) + color * opacity).astype(np.uint8)


def rgb_picture(image: np.ndarray) -> np.ndarray:
    """Return an image (H, W[, C]) as bytes (H, W, 3)."""
    # Other channels than colors as their mean.
    values = np.asarray(image)
    values = values[..., None] if values.ndim == 2 else values
    if values.dtype != np.uint8:
        low, high = float(values.min()), float(values.max())
        values = np.rint(255 * (values - low) / ((high - low) or 1.0)).astype(np.uint8)
    if values.shape[2] not in (1, 3):
        values = values.mean(axis=2, keepdims=True).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(values, (*values.shape[:2], 3)))


def overlay_svg(
    image: np.ndarray, explanation: Explanation, name: Any = None, top: int = 6, width: int = 150
) -> str:
    """Return what :func:`overlay_picture` shows as SVG that stands in a page."""
    # For small images.
    rows, cols = explanation.size
    unit = width / cols
    height = rows * unit
    shown = rgb_picture(image)
    drawn = [mark for mark in marks(explanation, name, top) if not mark.everywhere]
    label = 13.0
    places = _label_places(explanation, drawn, label, unit)
    parts = [
        _svg_image(shown, 0, width, height),
        _svg_image(_tinted(shown, explanation.relief(name)), width + 4, width, height),
        *_svg_boxes(explanation, drawn, unit),
        *_svg_labels(drawn, places, label),
    ]
    size = f"{2 * width + 4} {height:g}"
    return f'<svg viewBox="0 0 {size}" width="{2 * width + 4}" role="img">{"".join(parts)}</svg>'


def _svg_image(picture: np.ndarray, x: float, width: float, height: float) -> str:
    return (
        f'<image href="{png_source(picture)}" x="{x:g}" width="{width:g}" height="{height:g}" '
        'style="image-rendering: pixelated" preserveAspectRatio="none"/>'
    )


def _svg_boxes(explanation: Explanation, drawn: Sequence[Mark], unit: float) -> Iterator[str]:
    for mark in reversed(drawn):
        top, bottom, left, right = unit * explanation.boxes[mark.feature]
        edges = f'x="{left:.1f}" y="{top:.1f}"'
        size = f'width="{right - left:.1f}" height="{bottom - top:.1f}"'
        for stroke, thick in (("#fff", 3), (_hex(mark), 1.5)):
            yield f'<rect {edges} {size} fill="none" stroke="{stroke}" stroke-width="{thick}"/>'


def _svg_labels(
    drawn: Sequence[Mark], places: Sequence[tuple[float, float]], label: float
) -> Iterator[str]:
    for mark, (x, y) in zip(drawn, places, strict=True):
        size = f'width="{label:g}" height="{label:g}"'
        yield f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{_hex(mark)}" stroke="#fff"/>'
        middle = f'x="{x + label / 2:.1f}" y="{y + label - 3.5:.1f}" text-anchor="middle"'
        yield f'<text {middle} fill="#fff" font-size="9.5">{mark.rank}</text>'


def _hex(mark: Mark) -> str:
    return "#{:02x}{:02x}{:02x}".format(*mark.color)


def png_source(picture: np.ndarray) -> str:
    """Return bytes (H, W[, 3]) as the source of an image in a page."""
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(picture).save(data, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()
