"""Arrays as pictures that stand in a page itself."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

# The longer side of a small picture, at most; larger ones in color than these are JPEGs.
_LARGEST = 96
_LARGEST_PNG = 40


def rgb_picture(image: np.ndarray) -> np.ndarray:
    """Return an image (H, W[, C]) as bytes (H, W, 3); other channels than colors as their mean."""
    values = np.asarray(image)
    if values.ndim == 2:
        values = values[..., None]
    if values.dtype != np.uint8:
        low = float(values.min())
        high = float(values.max())
        values = np.rint(255 * (values - low) / ((high - low) or 1.0)).astype(np.uint8)
    if values.shape[2] not in (1, 3):
        values = values.mean(axis=2, keepdims=True).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(values, (*values.shape[:2], 3)))


def png_source(picture: np.ndarray, n_colors: int | None = None) -> str:
    """Return bytes (H, W[, 3]) as the source of an image in a page, perhaps in few colors."""
    drawn = Image.fromarray(picture)
    return _source(drawn if n_colors is None else drawn.quantize(n_colors), "PNG", optimize=True)


def thumbnail_source(image: np.ndarray) -> str:
    """Return a small picture of an image (H, W[, C]) as the source of an image in a page."""
    picture = rgb_picture(image)
    has_color = image.shape[2:] == (3,)
    drawn = Image.fromarray(picture if has_color else np.ascontiguousarray(picture[..., 0]))
    is_large = max(drawn.size) > _LARGEST_PNG
    drawn.thumbnail((_LARGEST, _LARGEST))
    if has_color and is_large:
        return _source(drawn, "JPEG", quality=80)
    return _source(drawn, "PNG", optimize=True)


def _source(picture: Image.Image, form: str, **options: int) -> str:
    data = io.BytesIO()
    picture.save(data, form, **options)
    return f"data:image/{form.lower()};base64,{base64.b64encode(data.getvalue()).decode()}"
