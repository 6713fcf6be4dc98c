"""The sets of benchmarks.pictures: those that the defaults were made with, and others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from visionshare.datasets import Cut, ImageSet, Preprocessing, load_images
from visionshare.datasets.sampling import stratified_mask

__all__ = ["KNOWN", "SETS", "UNSEEN", "for_peers", "load"]

Pair = tuple[ImageSet, ImageSet]
# Sides of images that a set has none of its own of, and patches of each texture.
_SIDE, _PATCHES, _TEST_PART = 32, 200, 0.25
# Sides of what peers get at most.
_LARGEST = 64
_SEED = 1


def load(name: str, data: Path) -> Pair:
    """Return training and test images of a set, one of :data:`SETS`."""
    return SETS[name](data)


def for_peers(images: ImageSet) -> ImageSet:
    """Return images that are not too large for networks and trees of pixels; ours shrinks them."""
    side = max(images.images.shape[1:3])
    if side <= _LARGEST:
        return images
    height, width = (round(v * _LARGEST / side) for v in images.images.shape[1:3])
    return _resized(images.images, (height, width), images)


def _given(name: str, mode: str = "gray") -> Callable[[Path], Pair]:
    """Return what reads a set that has a split."""

    def read(data: Path) -> Pair:
        train, test = (load_images(name, part, data, mode=mode) for part in ("train", "test"))
        return train, test

    return read


def _characters(data: Path) -> Pair:
    """Return characters of photographs, of which a fourth of each class tests."""
    images = load_characters(data / "chars74k" / "englishimg_good36_gray64.npz")
    testing = stratified_mask(images.labels, _TEST_PART, 0)
    return images.subset(np.flatnonzero(~testing)), images.subset(np.flatnonzero(testing))


def load_characters(file: Path) -> ImageSet:
    """Return the characters of a file, as images of 32 × 32 pixels."""
    with np.load(file) as arrays:
        pictures, samples = arrays["images"], arrays["sample"]
    steps = Preprocessing()
    images = np.stack([steps.apply(picture, (_SIDE, _SIDE)) for picture in pictures])
    return _labeled(images, samples, "chars74k")


def _brodatz(data: Path) -> Pair:
    """Return patches of 13 textures: left halves train, right ones test."""
    train, test = _patches(data / "brodatz" / "usc-sipi", Cut(_SIDE, _PATCHES, 0))
    # Larger scans of two of the textures are left out.
    classes = [name for name in train.classes if name.startswith("1.1.")]
    return train.of_classes(classes), test.of_classes(classes)


def _patches(folder: Path, cut: Cut) -> Pair:
    return load_images(folder, "train", cut=cut), load_images(folder, "test", cut=cut)


def _textures(side: int) -> Callable[[Path], Pair]:
    """Return what cuts 60 patches of each of 14 textures, of another scan than ``brodatz``."""
    return lambda data: _patches(data / "brodatz" / "randen", Cut(side, 60, 0))


def _digit_scans(data: Path) -> Pair:
    """Return digits of 16 × 15 pixels and seven grays, 100 a class to learn and to test."""
    from scipy.io import loadmat

    arrays = loadmat(data / "uci" / "mfeat" / "Mfeat.mat")
    (pixels,) = [view for view in arrays["X"].ravel() if 240 in view.shape]
    rows = pixels if pixels.shape[1] == 240 else pixels.T
    images = (rows.reshape(-1, 16, 15) * (255 / 6)).astype(np.uint8)
    return _split(_labeled(images, arrays["y"].ravel(), "mfeat"), 100)


def _small_digits(data: Path) -> Pair:
    """Return digits of MNIST without its margin, of 16 × 16 pixels, 200 a class."""
    parts = []
    for images in _given("mnist")(data):
        some = _some(images, 200)
        parts.append(_resized(some.images[:, 4:24, 4:24], (16, 16), some))
    return parts[0], parts[1]


def _of_photographs(classes: tuple[str, ...] | None, train: int, test: int) -> Callable[..., Pair]:
    """Return what takes so many photographs a class of CIFAR-10."""

    def read(data: Path) -> Pair:
        pair = _given("cifar10", "color")(data)
        if classes is not None:
            pair = (pair[0].of_classes(classes), pair[1].of_classes(classes))
        return _some(pair[0], train), _some(pair[1], test)

    return read


def _unbalanced(data: Path) -> Pair:
    """Return clothes, each class with 0.6 of the images of the one before; test images 200 each."""
    train, test = _given("fashion-mnist")(data)
    most = [int(500 * 0.6**number) + 4 for number in range(len(train.classes))]
    return _some(train, most), _some(test, 200)


def _letters_by_hand(data: Path) -> Pair:
    """Return letters that people drew, 29 of each to learn from."""
    with np.load(data / "chars74k" / "englishhnd_letters_gray150x200.npz") as arrays:
        images = _labeled(arrays["images"], arrays["sample"], "hand-letters")
    return _split(_resized(images.images, (_SIDE, 43), images), 29)


def _few_of_fonts(data: Path) -> Pair:
    """Return characters of fonts, 16 of each to learn from and 24 to test."""
    with np.load(data / "chars74k" / "englishfnt_34_gray28.npz") as arrays:
        images = _labeled(arrays["images"], arrays["sample"], "few-of-fonts")
    return _split(_some(images, 40), 16)


def _labeled(images: np.ndarray, labels: np.ndarray, name: str) -> ImageSet:
    names, numbers = np.unique(labels, return_inverse=True)
    return ImageSet(images, numbers.astype(np.int64), tuple(map(str, names)), name)


def _resized(images: np.ndarray, size: tuple[int, int], like: ImageSet) -> ImageSet:
    small = [cv2.resize(image, size[::-1], interpolation=cv2.INTER_AREA) for image in images]
    return ImageSet(np.stack(small), like.labels, like.classes, like.name)


def _some(images: ImageSet, most: int | list[int]) -> ImageSet:
    """Return so many images of each class, at random."""
    return images.subset(np.sort(np.concatenate(_drawn(images, most))))


def _split(images: ImageSet, n_train: int) -> Pair:
    """Return so many images of each class, and the others."""
    chosen = np.sort(np.concatenate(_drawn(images, n_train)))
    others = np.setdiff1d(np.arange(len(images)), chosen)
    return images.subset(chosen), images.subset(others)


def _drawn(images: ImageSet, most: int | list[int]) -> list[np.ndarray]:
    rng, numbers = np.random.default_rng(_SEED), range(len(images.classes))
    each = most if isinstance(most, list) else [most] * len(numbers)
    return [rng.permutation(np.flatnonzero(images.labels == k))[: each[k]] for k in numbers]


KNOWN: dict[str, Callable[[Path], Pair]] = {
    "digits": _given("digits"),
    "fashion-mnist": _given("fashion-mnist"),
    "cifar10": _given("cifar10", "color"),
    "chars74k": _characters,
    "brodatz": _brodatz,
}
UNSEEN: dict[str, Callable[[Path], Pair]] = {
    "mfeat": _digit_scans,
    "small-digits": _small_digits,
    "hand-letters": _letters_by_hand,
    "few-of-fonts": _few_of_fonts,
    "unbalanced-fashion": _unbalanced,
    "few-photographs": _of_photographs(None, 100, 200),
    "cats-and-dogs": _of_photographs(("cat", "dog"), 500, 1000),
    "textures-64": _textures(64),
    "textures-200": _textures(200),
}
SETS = KNOWN | UNSEEN | {"mnist": _given("mnist")}
