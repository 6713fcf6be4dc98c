"""Pages of text rendered from a font, to try a reader on."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np


def render_page(
    lines: Sequence[str],
    font: str | os.PathLike[str],
    points: float = 12.0,
    dpi: int = 200,
    margin: float = 0.5,
    spacing: float = 1.4,
) -> np.ndarray:
    """Return a page of text, black on white."""
    from PIL import Image, ImageDraw, ImageFont

    face = ImageFont.truetype(str(font), round(points * dpi / 72))
    edge = round(margin * dpi)
    step = round(spacing * face.size)
    width = max((int(face.getlength(line)) for line in lines), default=0)
    page = Image.new("L", (width + 2 * edge + 1, step * len(lines) + 2 * edge + 1), 255)
    draw = ImageDraw.Draw(page)
    for i, line in enumerate(lines):
        draw.text((edge, edge + i * step), line, fill=0, font=face)
    return np.asarray(page)
