"""Pictures that no class has, made from pictures of the classes: what a classifier may refuse."""

from __future__ import annotations

import cv2
import numpy as np

# Standard deviations of noise, in bytes.
_NOISE = (2.0, 10.0, 40.0, 80.0)


def strangers(images: np.ndarray, labels: np.ndarray, n: int, seed: int = 0) -> np.ndarray:
    """Return ``n`` pictures of each of nine kinds that are like no picture of a class."""
    # Halves of two classes, two classes laid on each other, shuffled tiles, negatives, enlarged
    # details, outlines, small parts of a picture, noise of any grain, and blank pictures.
    rng = np.random.default_rng(seed)
    rows, columns = images.shape[1:3]
    background = _background(images)

    def drawn() -> np.ndarray:
        return images[rng.integers(0, len(images), n)].copy()

    first, second = _of_two_classes(images, labels, n, rng)
    halves = first.copy()
    upright = rng.random(n) < 0.5
    halves[upright, :, columns // 2 :] = second[upright, :, columns // 2 :]
    halves[~upright, rows // 2 :] = second[~upright, rows // 2 :]
    mean = (first.astype(np.uint16) + second) // 2
    on_each_other = np.where(rng.random(n) < 0.5, np.maximum(first, second).T, mean.T).T
    parts = [
        halves,
        on_each_other,
        np.stack([_shuffled(image, rng) for image in drawn()]),
        255 - drawn(),
        np.stack(
            [
                _resized(image[_box(image.shape, 0.25, 0.5, rng)], image.shape, cv2.INTER_LINEAR)
                for image in drawn()
            ]
        ),
        np.stack([_outlines(image, rng) for image in drawn()]),
        np.stack([_small_part(image, background, rng) for image in drawn()]),
        np.stack([_noise(images.shape[1:], rng) for _ in range(n)]),
        _blank(images.shape[1:], n, rng),
    ]
    return np.concatenate([part.astype(np.uint8) for part in parts])


def turned(images: np.ndarray, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return ``n`` mirrored or turned copies of pictures, and the numbers of these pictures.

    Examples
    --------
    >>> copies, rows = turned(np.arange(8, dtype=np.uint8).reshape(2, 2, 2), 5)
    >>> copies.shape, rows.shape
    ((5, 2, 2), (5,))
    """
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(images), n)
    is_square = images.shape[1] == images.shape[2]
    ways = rng.integers(0, 4 if is_square else 3, n)
    made = images[rows].copy()
    for way, axes in enumerate([(1,), (2,), (1, 2)]):
        made[ways == way] = np.flip(made[ways == way], axes)
    if is_square:
        made[ways == 3] = np.rot90(made[ways == 3], axes=(1, 2))
    return made, rows


def pieces(images: np.ndarray, labels: np.ndarray, n: int, seed: int = 0) -> np.ndarray:
    """Return ``2 n`` pictures of parts: two classes side by side, and about one half.

    Examples
    --------
    >>> pieces(np.zeros((4, 8, 6), np.uint8), np.arange(4), 5).shape
    (10, 8, 6)
    """
    rng = np.random.default_rng(seed)
    background = _background(images)
    # A line at a random angle, near the center, is where a picture ends.
    y, x = (np.linspace(-0.5, 0.5, side) for side in images.shape[1:3])
    angle, offset = rng.uniform(0, 2 * np.pi, 2 * n), rng.uniform(-0.15, 0.15, 2 * n)
    across = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y[:, None]
    beyond = across > offset[:, None, None]
    made, others = _of_two_classes(images, labels, 2 * n, rng)
    others[n:] = background
    made[beyond] = others[beyond]
    return made


def _background(images: np.ndarray) -> np.ndarray:
    """Return the commonest color at the edges."""
    edges = np.concatenate([images[:, 0], images[:, -1]]).reshape(-1, *images.shape[3:])
    return np.asarray(np.median(edges, axis=0).astype(np.uint8))


def _of_two_classes(
    images: np.ndarray, labels: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of pictures, mostly of different classes."""
    one = rng.integers(0, len(images), n)
    other = rng.integers(0, len(images), n)
    for _ in range(4):
        same = labels[one] == labels[other]
        other[same] = rng.integers(0, len(images), int(same.sum()))
    return images[one], images[other]


def _resized(image: np.ndarray, like: tuple[int, ...], way: int) -> np.ndarray:
    rows, columns = like[:2]
    made = cv2.resize(np.ascontiguousarray(image), (columns, rows), interpolation=way)
    return made.reshape(rows, columns, *image.shape[2:])


def _box(
    shape: tuple[int, ...], low: float, high: float, rng: np.random.Generator
) -> tuple[slice, slice]:
    """Return a part of a picture whose sides are a random fraction of its own."""
    slices = []
    for side in shape[:2]:
        length = max(1, int(side * rng.uniform(low, high)))
        begin = int(rng.integers(0, side - length + 1))
        slices.append(slice(begin, begin + length))
    return slices[0], slices[1]


def _shuffled(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a picture whose tiles, 2 × 2 or 4 × 4, change places."""
    n = int(rng.choice([2, 2, 4]))
    height, width = image.shape[0] // n, image.shape[1] // n
    made = image.copy()
    for place, tile in enumerate(rng.permutation(n * n)):
        (i, j), (k, m) = divmod(place, n), divmod(int(tile), n)
        taken = image[k * height : (k + 1) * height, m * width : (m + 1) * width]
        made[i * height : (i + 1) * height, j * width : (j + 1) * width] = taken
    return made


def _outlines(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    values = image.astype(np.float32)
    down = np.abs(np.diff(values, axis=0, prepend=values[:1]))
    across = np.abs(np.diff(values, axis=1, prepend=values[:, :1]))
    return np.clip((down + across) * rng.uniform(1, 3), 0, 255)


def _small_part(image: np.ndarray, background: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a picture that is shrunk, or seen through a window, on a plain ground."""
    made = np.empty_like(image)
    made[:] = background
    box = _box(image.shape, 0.25, 0.6, rng)
    part = image[box]
    if rng.random() < 0.5:
        part = _resized(image, part.shape, cv2.INTER_AREA)
    made[box] = part
    return made


def _noise(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return noise of a random grain, from pixels to one gradient."""
    grain = int(rng.integers(1, max(shape[:2]) + 1))
    coarse = rng.normal(0, float(rng.choice(_NOISE)), (grain, grain, *shape[2:]))
    made = _resized(coarse.astype(np.float32), shape, cv2.INTER_CUBIC)
    return np.clip(rng.uniform(0, 255) + made, 0, 255)


def _blank(shape: tuple[int, ...], n: int, rng: np.random.Generator) -> np.ndarray:
    """Return pictures of one color, with the noise of a camera in some."""
    ones = (1,) * (len(shape) - 1)
    color = rng.uniform(0, 255, (n, *(1 for _ in shape[:2]), *shape[2:]))
    noise = rng.choice([0.0, 1.0, 3.0], (n, 1, *ones))
    return np.clip(color + noise * rng.normal(0, 1, (n, *shape)), 0, 255)
