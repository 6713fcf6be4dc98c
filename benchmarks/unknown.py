"""How well classifiers tell pictures of their kind from others, without having seen others.

    python -m benchmarks.unknown --data DIR --models FOLDER --json FILE

For each known set a classifier is learned (once: files in --models are used again) from 4,000
pictures; on the features of the pretrained network, from 600, and fewer of all others. Of the
known test pictures a half calibrates thresholds at which 1 % is refused; the other half and all
unknown sets are measured: the area under the ROC curve, and the share that is refused. Letters
that look like digits are a set of their own, and in no mean.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from PIL import Image
from scipy.special import logsumexp
from sklearn.covariance import ledoit_wolf
from sklearn.metrics import roc_auc_score

from benchmarks.picture_sets import load
from visionshare import CompactClassifier, ImageClassifier
from visionshare.classifier import learn_unknown_rule
from visionshare.datasets import ImageSet, load_images
from visionshare.datasets.sampling import stratified_mask
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.proposals import Data
from visionshare.image_classifier.transfer import Transfer
from visionshare.recipes import train_images
from visionshare.scores import softmax

__all__ = ["main", "measured", "unknown_sets"]

_SETS = ("mnist", "fashion-mnist", "cifar10", "flowers")
_PRETRAINED = " pretrained"
KNOWN = (*_SETS, "textures", *(name + _PRETRAINED for name in _SETS[2:]))
LOOK_ALIKES = "letters like digits"


class _Sizes(NamedTuple):
    """How many pictures train and test, and of each unknown set."""

    training: int
    testing: int
    others: int


_OWN, _OF_NETWORK = _Sizes(4000, 3000, 500), _Sizes(600, 1000, 100)
_REFUSED = 0.01
# Numbers of the letters in Chars74K: A is 11, a is 37.
_LIKE_DIGITS = {*(ord(c) - ord("A") + 11 for c in "OISBZGQDL"),
                *(ord(c) - ord("a") + 37 for c in "oilsbzgqtr")}  # fmt: skip


def known_set(name: str, data: Path, sizes: _Sizes = _OWN) -> tuple[ImageSet, ImageSet]:
    """Return training and test pictures of a known set."""
    if name == "textures":
        parts = list(load("brodatz", data))
    elif name == "flowers":
        file = data / "flowers" / "flowers128.tar"
        parts = [load_images(file, part, size=(48, 48), mode="color") for part in ("train", "test")]
    else:
        mode = "color" if name == "cifar10" else "gray"
        parts = [load_images(name, part, data, mode=mode) for part in ("train", "test")]
    return _some(parts[0], sizes.training), _some(parts[1], sizes.testing)


def _some(images: ImageSet, n: int) -> ImageSet:
    if len(images) <= n:
        return images
    return images.subset(np.flatnonzero(stratified_mask(images.labels, n / len(images), 0)))


def unknown_sets(
    data: Path, shape: tuple[int, ...], known: str, n: int = _OWN.others
) -> dict[str, np.ndarray]:
    """Return the unknown pictures beside a known set, as images of the classifier's shape."""
    rng = np.random.default_rng(0)
    sets = {name: known_set(name, data)[1].images for name in _SETS if name != known}
    if known != "textures":
        files = sorted((data / "brodatz" / "usc-sipi").glob("1.1.*.tiff"))
        sets["textures"] = _crops(files, 64, n, rng)
    sets["meter"] = _crops(sorted((data / "meter-frames").glob("*.jpg")), 100, n, rng)
    with np.load(data / "chars74k" / "englishimg_good36_gray64.npz") as arrays:
        sets["characters of photographs"] = arrays["images"]
    made = {name: _fitted(images, shape, n, rng) for name, images in sets.items()}
    made["noise"] = rng.integers(0, 256, (n, *shape), np.uint8)
    grays = rng.uniform(0, 255, (n, *(1 for _ in shape)))
    made["blank"] = np.clip(grays + rng.normal(0, 1, (n, *shape)), 0, 255).astype(np.uint8)
    if known in ("mnist", "fashion-mnist"):
        made |= _letters(data, shape, n, rng)
    return made


def _crops(files: list[Path], side: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return square parts of photographs, of half to one and a half of a side."""
    made = []
    for file in files:
        picture = np.asarray(Image.open(file).convert("RGB"))
        for _ in range(n // len(files) + 1):
            length = int(side * rng.uniform(0.5, 1.5))
            row, column = (int(rng.integers(0, high - length)) for high in picture.shape[:2])
            part = picture[row : row + length, column : column + length]
            made.append(cv2.resize(part, (48, 48), interpolation=cv2.INTER_AREA))
    return np.stack(made)


def _fitted(
    images: np.ndarray, shape: tuple[int, ...], n: int, rng: np.random.Generator
) -> np.ndarray:
    """Return some images in the shape and the colors of a classifier."""
    images = images[np.sort(rng.permutation(len(images))[:n])]
    if len(shape) == 3 and images.ndim == 3:
        images = np.repeat(images[..., None], 3, axis=3)
    elif len(shape) == 2 and images.ndim == 4:
        images = np.stack([cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in images])
    size = shape[1], shape[0]
    return np.stack([cv2.resize(i, size, interpolation=cv2.INTER_AREA) for i in images])


def _letters(
    data: Path, shape: tuple[int, ...], n: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return letters of fonts and of hands, light on dark and centered as the digits of MNIST."""
    made: dict[str, list[np.ndarray]] = {LOOK_ALIKES: []}
    for name, file in (
        ("fonts", "englishfnt_34_gray28"),
        ("hands", "englishhnd_letters_gray150x200"),
    ):
        with np.load(data / "chars74k" / f"{file}.npz") as arrays:
            images, numbers = arrays["images"], arrays["sample"]
        is_letter = np.flatnonzero(numbers > 10)
        some = rng.permutation(is_letter)[: 2 * n]
        alike = np.isin(numbers[some], list(_LIKE_DIGITS))
        centered = np.stack([_centered(image, shape) for image in images[some]])
        made[f"letters of {name}"] = list(centered[~alike])
        made[LOOK_ALIKES] += list(centered[alike])
    return {name: np.stack(images) for name, images in made.items()}


def _centered(image: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return ink whose longer side fills 20 of 28 pixels, in the middle, light on dark."""
    light = 255 - image if np.median(image) > 127 else image
    rows, columns = (np.flatnonzero((light > 64).any(axis=axis)) for axis in (1, 0))
    made = np.zeros(shape, np.uint8)
    if len(rows) == 0:
        return made
    ink = light[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    scale = min(shape) * 20 / 28 / max(ink.shape)
    height, width = (max(1, round(n * scale)) for n in ink.shape)
    top, left = (shape[0] - height) // 2, (shape[1] - width) // 2
    small = cv2.resize(ink, (width, height), interpolation=cv2.INTER_AREA)
    made[top : top + height, left : left + width] = small
    return made


class _Seen(NamedTuple):
    """Pictures, what the features of a classifier say of them, and its scores."""

    images: np.ndarray
    values: np.ndarray
    scores: np.ndarray


Score = Callable[[_Seen], np.ndarray]


def seen_by(model: CompactClassifier, images: np.ndarray) -> _Seen:
    """Return pictures with their features: these are costly, and computed once."""
    values = model.family.transform(images).astype(np.float64)
    return _Seen(images, values, values @ model.weights.T + model.intercept)


def scores_of(model: CompactClassifier, train: _Seen, held_out: np.ndarray) -> dict[str, Score]:
    """Return what is compared: larger for pictures that look known."""
    best = np.argmax(train.scores, axis=1)
    present = np.unique(best)
    means = np.stack([train.values[best == c].mean(axis=0) for c in present])
    covariance, _ = ledoit_wolf(train.values - means[np.searchsorted(present, best)])
    ridge = 1e-6 * np.trace(covariance) / len(covariance)
    whitening = np.linalg.cholesky(np.linalg.inv(covariance + ridge * np.eye(len(covariance))))
    rule = learn_unknown_rule(model, train.images, held_out, unknown_label=_label(model))
    refusing = replace(model, unknown=rule)

    def nearest(values: np.ndarray, makes: np.ndarray) -> np.ndarray:
        made = values @ makes
        return -np.min([((made - mean @ makes) ** 2).sum(axis=1) for mean in means], axis=0)

    plain = np.eye(train.values.shape[1]) / (train.values.std() + 1e-9)
    return {
        "largest probability": lambda seen: softmax(seen.scores, model.temperature).max(axis=1),
        "energy": lambda seen: logsumexp(seen.scores / model.temperature, axis=1),
        "nearest class mean": lambda seen: nearest(seen.values, plain),
        "Mahalanobis": lambda seen: nearest(seen.values, whitening),
        "visionshare": lambda seen: refusing.known(seen.images),
    }


def _label(model: CompactClassifier) -> Any:
    return None if model.classes.dtype.kind in "UO" else -1


def measured(model: CompactClassifier, known: str, data: Path) -> list[dict[str, Any]]:
    """Return a row for each unknown set and score."""
    name, sizes = _set_of(known)
    train, test = known_set(name, data, sizes)
    held_out, others = (seen_by(model, test.images[i::2]) for i in range(2))
    sets = unknown_sets(data, model.image_shape, name, sizes.others)
    seen = {unknown: seen_by(model, images) for unknown, images in sets.items()}
    rows = []
    for way, score in scores_of(model, seen_by(model, train.images), held_out.images).items():
        threshold = np.quantile(score(held_out), _REFUSED)
        of_known = score(others)
        for unknown, pictures in seen.items():
            of_unknown = score(pictures)
            truth = np.repeat([1, 0], [len(of_known), len(of_unknown)])
            rows.append({
                "known": known, "unknown": unknown, "score": way,
                "auroc": float(roc_auc_score(truth, np.append(of_known, of_unknown))),
                "refused": float((of_unknown < threshold).mean()),
                "known_refused": float((of_known < threshold).mean()),
            })  # fmt: skip
    return rows


def _set_of(known: str) -> tuple[str, _Sizes]:
    """Return the set of a known one, and how many pictures there are."""
    name = known.removesuffix(_PRETRAINED)
    return name, _OWN if name == known else _OF_NETWORK


def learned(known: str, data: Path, seconds: float) -> CompactClassifier:
    """Return a classifier of a known set: searched, or linear on features of the network."""
    name, sizes = _set_of(known)
    train, _ = known_set(name, data, sizes)
    if name == known:
        learner = ImageClassifier(time=seconds, n_jobs=1, pretrained=False)
        return learner.fit(train.images, np.asarray(train.classes)[train.labels]).classifier_
    transfer = Transfer({"size": 128, "power": 0.5}, Budget(None), lambda rows, _: rows)
    proposed = Data.of(train)
    recipe = next(transfer.proposals(proposed)).recipe(proposed, epochs=0)
    return train_images(recipe, train)


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return a table: means of each score over all pairs, then the pairs."""
    names = list(dict.fromkeys(row["score"] for row in rows))
    text = [f"{'':34}" + "".join(f"{name:>22}" for name in names)]
    pairs = list(dict.fromkeys((row["known"], row["unknown"]) for row in rows))
    table = {(row["known"], row["unknown"], row["score"]): row for row in rows}
    for known, unknown in pairs:
        cells = [table[known, unknown, name] for name in names]
        figures = "".join(f"{c['auroc']:14.3f} {100 * c['refused']:5.1f} %" for c in cells)
        text.append(f"{known + ' / ' + unknown:34.34}{figures}")
    counted = [pair for pair in pairs if pair[1] != LOOK_ALIKES]
    text.append(f"{f'mean of {len(counted)} pairs':34}")
    for name in names:
        cells = [table[known, unknown, name] for known, unknown in counted]
        auroc = np.mean([cell["auroc"] for cell in cells])
        refused = 100 * np.mean([cell["refused"] for cell in cells])
        text[-1] += f"{auroc:14.3f} {refused:5.1f} %"
    return text


def main(arguments: list[str] | None = None) -> None:
    """Learn what is missing, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--known", nargs="*", default=list(KNOWN), choices=KNOWN)
    parser.add_argument("--time", type=float, default=60, help="seconds that a classifier learns")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    given.models.mkdir(parents=True, exist_ok=True)
    rows = []
    for known in given.known:
        file = given.models / f"{known}.safetensors"
        if not file.exists():
            learned(known, given.data, given.time).save(file)
        rows += measured(CompactClassifier.load(file), known, given.data)
    sys.stdout.write("\n".join(lines(rows)) + "\n")
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
