"""How copies differ from their images, and the stream of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from visionshare.datasets.augmentation.deformations import Deformation, Moves, moved
from visionshare.errors import InputError
from visionshare.machine.resources import resolve_jobs, thread_limit

__all__ = ["Augmentation", "augmented_copies", "elastic_deformations"]

# Images that share a stream of random numbers: a generator each would take half of the time.
_BLOCK = 64
# Pixels or degrees: more leaves nothing of an image.
_LARGEST = 10_000
# Numbers of one image for all but elastic and affine maps: settings draw the same ones whatever
# the others are.
_DRAWS = 8
_BORDERS = ("zero", "reflect")


@dataclass(frozen=True)
class Augmentation:
    """How copies differ from their images.

    A copy is mirrored and shifted, then deformed, all in one resampling; then its colors change,
    and last a square of it is hidden. Where nothing is deformed, nothing is interpolated.

    Attributes
    ----------
    alpha : float, default 1.0
        Size of the elastic displacements in pixels: their root mean square.
    sigma : float, default 4.0
        Width in pixels of the Gaussian that smooths them, above 0.
    rotation : float, default 10.0
        Largest angle in degrees.
    scale : float, default 0.1
        Largest relative change of width and of height.
    shear : float, default 0.1
        Largest shear.
    flip : float, default 0.0
        Probability that left and right change places.
    shift : int, default 0
        Largest shift in whole pixels, down and to the right and back: a random crop of the image
        with a border of this width.
    border : {"zero", "reflect"}, default "zero"
        What lies outside of the image: zeros, or its reflection, its edge not repeated.
    brightness : float, default 0.0
        Largest relative change of all values, at most 1.
    contrast : float, default 0.0
        Largest relative change of values' distances from the image's mean gray, at most 1.
    saturation : float, default 0.0
        Largest relative change of values' distances from their pixel's gray, at most 1; only
        images of three channels have it.
    cut_out : int, default 0
        Side in pixels of the square that is hidden; its middle is any pixel of the image.
    cut_out_fill : float, optional
        What the square shows, from 0, black, to 1, white. The copy's mean color when omitted.

    Raises
    ------
    InputError
        If a value is out of range.

    References
    ----------
    P. Simard, D. Steinkraus, J. Platt, "Best practices for convolutional neural networks applied
    to visual document analysis", ICDAR 2003. A. Krizhevsky, I. Sutskever, G. Hinton, "ImageNet
    classification with deep convolutional neural networks", NIPS 2012, §4.1. T. DeVries, G.
    Taylor, "Improved regularization of convolutional neural networks with cutout", 2017.

    Examples
    --------
    >>> natural = Augmentation(alpha=0, rotation=0, scale=0, shear=0, flip=0.5, shift=4)
    >>> natural.deforms
    False
    >>> Augmentation(flip=2)
    Traceback (most recent call last):
        ...
    visionshare.errors.InputError: flip: got 2; accepted: a number from 0 to 1
    """

    alpha: float = 1.0
    sigma: float = 4.0
    rotation: float = 10.0
    scale: float = 0.1
    shear: float = 0.1
    flip: float = 0.0
    shift: int = 0
    border: str = "zero"
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    cut_out: int = 0
    cut_out_fill: float | None = None

    def __post_init__(self) -> None:
        if self.border not in _BORDERS:
            raise InputError("border", self.border, " or ".join(map(repr, _BORDERS)))
        for name in ("alpha", "sigma", "rotation", "scale", "shear"):
            size = getattr(self, name)
            if not _in_range(size, _LARGEST) or (name == "sigma" and size == 0):
                accepted = f"a number from 0 to {_LARGEST} (sigma above 0)"
                raise InputError(name, size, accepted)
        for name in ("flip", "brightness", "contrast", "saturation", "cut_out_fill"):
            value = getattr(self, name)
            if not _in_range(value, 1) and not (name == "cut_out_fill" and value is None):
                raise InputError(name, value, "a number from 0 to 1")
        for name in ("shift", "cut_out"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or not _in_range(value, _LARGEST):
                raise InputError(name, value, f"a whole number from 0 to {_LARGEST}")

    @property
    def deforms(self) -> bool:
        """Whether copies are deformed, so that pixels are interpolated."""
        return any((self.alpha, self.rotation, self.scale, self.shear))

    @property
    def moves(self) -> bool:
        """Whether copies are mirrored or shifted, or what lies outside of images is not 0."""
        return bool(self.flip or self.shift or self.border != "zero")

    @property
    def recolors(self) -> bool:
        """Whether colors change."""
        return any((self.brightness, self.contrast, self.saturation))


def _in_range(value: object, largest: float) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) <= largest


def augmented_copies(
    images: np.ndarray,
    augmentation: Augmentation,
    n_copies: int = 1,
    random_state: int = 0,
    batch: int = 4096,
    first_copy: int = 0,
    n_jobs: int = 1,
) -> Iterator[tuple[int, slice, np.ndarray]]:
    """Yield random copies of images, batch by batch.

    Each copy depends on the seed, the image's index and the copy's number alone.

    Parameters
    ----------
    images : ndarray of shape (n, H, W) or (n, H, W, C), uint8 or float32
        Floats from 0 to 1, where their colors change.
    augmentation : Augmentation
    n_copies : int, default 1
    random_state : int, default 0
    batch : int, default 4096
        Images per batch, at least 1; rounded up to blocks of 64.
    first_copy : int, default 0
        Number of the first copy: more copies than these can be made later.
    n_jobs : int, default 1
        Threads; no copy depends on it.

    Yields
    ------
    copy : int
    indices : slice
        Of the images.
    copies : ndarray
        Of these images.

    Raises
    ------
    InputError
        If an argument is out of range, or the images are of another shape or type.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    >>> mirror = Augmentation(alpha=0, rotation=0, scale=0, shear=0, flip=1)
    >>> [part.tolist() for _, _, part in augmented_copies(images, mirror)]
    [[[[2, 1, 0], [5, 4, 3]]]]
    """
    _check_images(images, augmentation)
    for name, value in (("n_copies", n_copies), ("first_copy", first_copy), ("batch", batch)):
        if not hasattr(value, "__index__") or value < (name == "batch"):
            raise InputError(name, value, "an integer of at least 0 (batch of at least 1)")
    deformation = _deformation(images.shape[1:3], augmentation)
    # Whole blocks, so that batches of any size yield the same copies.
    step = -(-batch // _BLOCK) * _BLOCK
    threads = resolve_jobs(n_jobs)
    with ThreadPoolExecutor(threads) as pool:
        for copy in range(first_copy, first_copy + n_copies):

            def block(first: int, copy: int = copy) -> np.ndarray:
                key = [random_state, copy, first // _BLOCK]
                return _augmented(images[first : first + _BLOCK], key, augmentation, deformation)

            for start in range(0, len(images), step):
                indices = slice(start, min(start + step, len(images)))
                firsts = range(start, indices.stop, _BLOCK)
                with thread_limit(threads):
                    # One thread: no pool is waited for between pieces of a millisecond.
                    parts = list(pool.map(block, firsts) if threads > 1 else map(block, firsts))
                yield copy, indices, np.concatenate(parts)


def elastic_deformations(
    images: np.ndarray,
    n_copies: int = 5,
    alpha: float = 1.0,
    sigma: float = 4.0,
    rotation: float = 10.0,
    scale: float = 0.1,
    shear: float = 0.1,
    random_state: int = 0,
    batch: int = 4096,
    first_copy: int = 0,
    n_jobs: int = 1,
) -> Iterator[tuple[int, slice, np.ndarray]]:
    """Yield deformed copies of images, batch by batch: :func:`augmented_copies` without the rest.

    Parameters
    ----------
    images : ndarray of shape (n, H, W) or (n, H, W, C), uint8 or float32
    n_copies : int, default 5
    alpha, sigma, rotation, scale, shear : float
        As in :class:`Augmentation`.
    random_state, batch, first_copy, n_jobs : int
        As in :func:`augmented_copies`.

    Yields
    ------
    copy : int
    indices : slice
        Of the images.
    deformed : ndarray
        Their copies.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.zeros((3, 8, 8), np.uint8)
    >>> [(c, part.shape) for c, _, part in elastic_deformations(images, 2)]
    [(0, (3, 8, 8)), (1, (3, 8, 8))]
    """
    sizes = Augmentation(alpha, sigma, rotation, scale, shear)
    yield from augmented_copies(images, sizes, n_copies, random_state, batch, first_copy, n_jobs)


def _check_images(images: np.ndarray, augmentation: Augmentation) -> None:
    if images.ndim not in (3, 4):
        raise InputError("images", images.shape, "images of shape (n, H, W) or (n, H, W, C)")
    colored = augmentation.recolors or augmentation.cut_out
    if colored and images.dtype not in (np.uint8, np.float32, np.float64):
        accepted = "images of uint8 or float32, where colors change"
        raise InputError("images", str(images.dtype), accepted)


def _deformation(shape: tuple[int, int], augmentation: Augmentation) -> Deformation | None:
    if not augmentation.deforms:
        return None
    scale, angle = augmentation.scale, np.deg2rad(augmentation.rotation)
    limits = np.array([angle, scale, scale, augmentation.shear])
    return Deformation.of(shape, augmentation.sigma, augmentation.alpha, limits)


def _augmented(
    images: np.ndarray,
    key: list[int],
    augmentation: Augmentation,
    deformation: Deformation | None,
) -> np.ndarray:
    """Return a copy of each image of a block; a block draws the same however few it holds."""
    # A stream of its own: elastic and affine maps are those of before whatever else is asked.
    draws = np.random.default_rng([*key, 1]).random((_DRAWS, _BLOCK))
    moves = _moves(augmentation, draws[:3]) if augmentation.moves else None
    if deformation is not None:
        out = deformation.deformed(images, _BLOCK, np.random.default_rng(key), moves)
    else:
        out = images.copy() if moves is None else moved(images, moves)
    pixels = out.reshape(*images.shape[:3], -1)
    if augmentation.recolors:
        _recolor(pixels, augmentation, draws[3:6])
    if augmentation.cut_out:
        _cut_out(pixels, augmentation, draws[6:8])
    return out


def _moves(augmentation: Augmentation, draws: np.ndarray) -> Moves:
    largest = augmentation.shift
    down, right = (draws[1:] * (2 * largest + 1)).astype(np.int64) - largest
    return Moves(draws[0] < augmentation.flip, down, right, augmentation.border == "reflect")


def _recolor(pixels: np.ndarray, augmentation: Augmentation, draws: np.ndarray) -> None:
    from visionshare.datasets.augmentation.kernels import recolor

    saturation = augmentation.saturation if pixels.shape[3] == 3 else 0.0
    limits = np.array([augmentation.brightness, augmentation.contrast, saturation])
    recolor(pixels, (1 + (2 * draws.T - 1) * limits).astype(np.float32))


def _cut_out(pixels: np.ndarray, augmentation: Augmentation, draws: np.ndarray) -> None:
    from visionshare.datasets.augmentation.kernels import hide

    side, fill = augmentation.cut_out, augmentation.cut_out_fill
    sides = np.array(pixels.shape[1:3])[:, None]
    rows, columns = (draws * sides).astype(np.int64) - side // 2
    hide(pixels, rows, columns, side, math.nan if fill is None else float(fill))
