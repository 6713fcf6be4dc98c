"""What windows of a photograph show: nothing of any class, or a thing that is a little off."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from visionshare.datasets.preprocessing import Preprocessing

# Things are off by this part of a window's side at most, and smaller or larger by this factor.
_OFF, _FACTOR = 0.08, 1.1
# A part of a photograph that surrounds a thing, in sides of the thing.
_AROUND = 1.5


def random_windows(
    photographs: Sequence[np.ndarray], n: int, shape: tuple[int, ...], seed: int = 0
) -> np.ndarray:
    """Return ``n`` parts of photographs, of any size and place, in the shape of a window.

    Examples
    --------
    >>> random_windows([np.zeros((90, 120), np.uint8)], 3, (28, 20)).shape
    (3, 28, 20)
    """
    rng = np.random.default_rng(seed)
    made = np.empty((n, *shape), np.uint8)
    for i, number in enumerate(rng.integers(0, len(photographs), n)):
        photograph = photographs[number]
        # 1) The largest part of this shape, times a factor; small and large ones are as frequent.
        most = min(np.divide(photograph.shape[:2], shape[:2]))
        factor = most * min(1.0, 1 / most) ** rng.uniform()
        rows, columns = (max(1, int(side * factor)) for side in shape[:2])
        # 2) Somewhere.
        top = int(rng.integers(0, photograph.shape[0] - rows + 1))
        left = int(rng.integers(0, photograph.shape[1] - columns + 1))
        part = np.ascontiguousarray(photograph[top : top + rows, left : left + columns])
        way = cv2.INTER_AREA if factor > 1 else cv2.INTER_LINEAR
        made[i] = cv2.resize(part, shape[1::-1], interpolation=way).reshape(shape)
    return made


def off_center(images: np.ndarray, photographs: Sequence[np.ndarray], seed: int = 0) -> np.ndarray:
    """Return each image pasted into a photograph, seen by a window that is a little off.

    Examples
    --------
    >>> images = np.full((2, 8, 8), 255, np.uint8)
    >>> seen = off_center(images, [np.zeros((40, 40), np.uint8)])
    >>> seen.shape, bool((seen[:, 2:6, 2:6] == 255).all()), bool(seen.min() < 255)
    ((2, 8, 8), True, True)
    """
    rng = np.random.default_rng(seed)
    rows, columns, *colors = images.shape[1:]
    around = (round(_AROUND * rows), round(_AROUND * columns))
    scenes = random_windows(photographs, len(images), (*around, *colors), seed)
    top, left = (around[0] - rows) // 2, (around[1] - columns) // 2
    scenes[:, top : top + rows, left : left + columns] = images
    made = np.empty_like(images)
    for i, scene in enumerate(scenes):
        # The window's corner, a little off that of the thing, and its pixels' size.
        factor = _FACTOR ** rng.uniform(-1, 1)
        off = rng.uniform(-_OFF, _OFF, 2) - (factor - 1) / 2
        y, x = off * (rows, columns)
        window = np.array([[factor, 0, left + x], [0, factor, top + y]], np.float32)
        seen = cv2.warpAffine(
            scene, window, (columns, rows), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REFLECT,
        )  # fmt: skip
        made[i] = seen.reshape(images.shape[1:])
    return made


def prepared(windows: np.ndarray, steps: Preprocessing) -> np.ndarray:
    """Return windows as crops are prepared: ink is cut out, for example."""
    if steps == Preprocessing():
        return windows
    size = windows.shape[1:3]
    return np.stack([steps.apply(window, size) for window in windows]).reshape(windows.shape)
