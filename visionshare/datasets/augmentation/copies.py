"""How copies differ from their images, and the stream of them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from visionshare.datasets.augmentation.deformations import Deformation, Moves, moved
from visionshare.datasets.checks import check_choice, check_number
from visionshare.errors import InputError
from visionshare.machine.resources import resolve_jobs, thread_limit

# Images that share a stream of random numbers: a generator each would take half of the time.
_BLOCK = 64
# Pixels or degrees: more leaves nothing of an image.
_LARGEST = 10_000
# Numbers of one image for all but elastic and affine maps: settings draw the same ones whatever
# the others are.
_DRAWS = 8


@dataclass(frozen=True)
class Augmentation:
    """How random copies of images are made.

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
        Side in pixels of the square that is hidden by the copy's mean color; its middle is any
        pixel of the image.

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

    def __post_init__(self) -> None:
        check_choice("border", self.border, ("zero", "reflect"))
        for name in ("alpha", "sigma", "rotation", "scale", "shear"):
            check_number(name, getattr(self, name), 0, _LARGEST)
        if self.sigma == 0:
            raise InputError("sigma", self.sigma, f"a number above 0, to {_LARGEST}")
        for name in ("flip", "brightness", "contrast", "saturation"):
            check_number(name, getattr(self, name), 0, 1)
        for name in ("shift", "cut_out"):
            check_number(name, getattr(self, name), 0, _LARGEST, whole=True)

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

    Examples
    --------
    >>> import numpy as np
    >>> images = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    >>> mirror = Augmentation(alpha=0, rotation=0, scale=0, shear=0, flip=1)
    >>> [part.tolist() for _, _, part in augmented_copies(images, mirror)]
    [[[[2, 1, 0], [5, 4, 3]]]]
    """
    if images.ndim not in (3, 4):
        raise InputError("images", images.shape, "images of shape (n, H, W) or (n, H, W, C)")
    changes_colors = augmentation.recolors or augmentation.cut_out
    if changes_colors and images.dtype not in (np.uint8, np.float32, np.float64):
        accepted = "images of uint8 or float32, where colors change"
        raise InputError("images", str(images.dtype), accepted)
    check_number("n_copies", n_copies, 0, whole=True)
    check_number("first_copy", first_copy, 0, whole=True)
    check_number("batch", batch, 1, whole=True)
    deformation = Deformation(images.shape[1:3], augmentation) if augmentation.deforms else None
    # Whole blocks, so that batches of any size yield the same copies.
    step = -(-batch // _BLOCK) * _BLOCK
    n_threads = resolve_jobs(n_jobs)
    with ThreadPoolExecutor(n_threads) as threads:
        for copy in range(first_copy, first_copy + n_copies):

            def block(first: int, copy: int = copy) -> np.ndarray:
                key = [random_state, copy, first // _BLOCK]
                return _augmented(images[first : first + _BLOCK], key, augmentation, deformation)

            for start in range(0, len(images), step):
                stop = min(start + step, len(images))
                firsts = range(start, stop, _BLOCK)
                with thread_limit(n_threads):
                    # One thread: no pool is waited for between pieces of a millisecond.
                    made = threads.map(block, firsts) if n_threads > 1 else map(block, firsts)
                    copies = np.concatenate(list(made))
                yield copy, slice(start, stop), copies


def _augmented(
    images: np.ndarray,
    key: list[int],
    augmentation: Augmentation,
    deformation: Deformation | None,
) -> np.ndarray:
    """Return a copy of each image of a block; a block draws the same however few it holds."""
    from visionshare.datasets.augmentation.kernels import hide, recolor

    # A stream of its own: elastic and affine maps are the same whatever else is asked.
    draws = np.random.default_rng([*key, 1]).random((_DRAWS, _BLOCK))
    # 1) mirrored, shifted and deformed
    moves = None
    if augmentation.moves:
        shifts = (draws[1:3] * (2 * augmentation.shift + 1)).astype(np.int64) - augmentation.shift
        is_mirrored = draws[0] < augmentation.flip
        moves = Moves(is_mirrored, shifts[0], shifts[1], augmentation.border == "reflect")
    if deformation is not None:
        out = deformation.deformed(images, _BLOCK, np.random.default_rng(key), moves)
    else:
        out = images.copy() if moves is None else moved(images, moves)
    pixels = out.reshape(*images.shape[:3], -1)
    # 2) colors
    if augmentation.recolors:
        saturation = augmentation.saturation if pixels.shape[3] == 3 else 0.0
        limits = np.array([augmentation.brightness, augmentation.contrast, saturation])
        recolor(pixels, (1 + (2 * draws[3:6].T - 1) * limits).astype(np.float32))
    # 3) a square is hidden
    if augmentation.cut_out:
        side = augmentation.cut_out
        sides = np.array(pixels.shape[1:3])[:, None]
        rows, columns = (draws[6:8] * sides).astype(np.int64) - side // 2
        hide(pixels, rows, columns, side)
    return out
