"""Digits in photographs: how many are found, how many boxes are wrong, how long it takes.

    python -m benchmarks.finding --data DIR --model FILE --json FILE

The classifier is learned from 4,000 digits of MNIST, which take a minute, unless FILE is there.
The background that it refuses is photographs of CIFAR-10; --no-background is without any.
Each photograph of 192 × 192 has a digit of 28, one of 42 and one of 63 pixels, from the test
images, in three of its corners. A box is right if it overlaps a digit that no surer box has by
half (intersection over union) and names it. Average precision is the mean of the precisions at
all digits, those that are not found with 0.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from benchmarks.unknown import known_set
from visionshare import CompactClassifier, ImageClassifier
from visionshare.classifier import learn_unknown_rule
from visionshare.datasets import ImageSet, load_images
from visionshare.reading.finding import Found, find, overlap

__all__ = ["average_precision", "main", "scenes"]

SIZES = (28, 42, 63)
_SIDE, _SMALLEST = 192, 24
# Photographs of the background.
_BACKGROUND = 500


class Scene(NamedTuple):
    """A photograph, the boxes of its digits (n, 4) and their labels."""

    picture: np.ndarray
    boxes: np.ndarray
    labels: list[str]


def scenes(digits: ImageSet, photographs: np.ndarray, n: int, seed: int = 0) -> list[Scene]:
    """Return photographs with a digit of each size."""
    rng = np.random.default_rng(seed)
    made = []
    for picture in photographs[rng.permutation(len(photographs))[:n]]:
        scene = cv2.resize(picture, (_SIDE, _SIDE))
        boxes = []
        labels = []
        corners = rng.permutation([(5, 5), (5, 110), (110, 5), (110, 110)])
        for side, corner in zip(SIZES, corners, strict=False):
            number = rng.integers(len(digits))
            top, left = corner + rng.integers(0, 15, 2)
            digit = cv2.resize(digits.images[number], (side, side))
            scene[top : top + side, left : left + side] = digit
            boxes.append((top, left, top + side, left + side))
            labels.append(digits.classes[digits.labels[number]])
        made.append(Scene(scene, np.array(boxes, np.float64), labels))
    return made


def right_boxes(found: list[Found], scene: Scene) -> list[int | None]:
    """Return the digit that each box shows, the surest first; None of wrong boxes."""
    left = np.ones(len(scene.boxes), bool)
    shown: list[int | None] = []
    for one in found:
        named = [str(one.label) == label for label in scene.labels]
        overlaps = overlap(np.array(one.box, np.float64), scene.boxes) * (left & named)
        best = int(overlaps.argmax())
        shown.append(best if overlaps[best] >= 0.5 else None)
        left[best] &= shown[-1] is None
    return shown


def average_precision(scores: np.ndarray, right: np.ndarray, n: int) -> float:
    """Return the area under precision and recall, of n things that may be found."""
    order = np.argsort(-scores, kind="stable")
    hits = right[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    # The precision at a recall is the best one at this recall or a higher one.
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(best[hits].sum() / n)


def measured(model: CompactClassifier, made: list[Scene], least: float) -> dict[str, Any]:
    """Return average precision, what is found by size, and times."""
    find(model, made[0].picture, smallest=_SMALLEST)
    seconds = []
    scores: list[float] = []
    shown: list[int | None] = []
    for scene in made:
        begun = time.process_time()
        found = find(model, scene.picture, smallest=_SMALLEST, least=least)
        seconds.append(time.process_time() - begun)
        scores += [one.score for one in found]
        shown += right_boxes(found, scene)
    right = np.array([one is not None for one in shown], bool)
    n = len(made) * len(SIZES)
    middle = float(np.median(seconds))
    return {
        "pictures": len(made), "digits": n,
        "average precision": average_precision(np.array(scores), right, n),
        "found": {side: shown.count(i) for i, side in enumerate(SIZES)},
        "wrong boxes": int((~right).sum()),
        "milliseconds": 1e3 * middle,
        "microseconds per megapixel": 1e6 * middle / (_SIDE**2 / 1e6),
        "macs": model.macs,
    }  # fmt: skip


def main() -> None:
    """Learn what is missing, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--time", type=float, default=60, help="seconds that the classifier learns")
    parser.add_argument("--n", type=int, default=24, help="photographs")
    parser.add_argument("--least", type=float, default=0.1, help="score of a box at least")
    parser.add_argument("--no-background", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    train, test = known_set("mnist", given.data)
    if not given.model.exists():
        truth = np.asarray(train.classes)[train.labels]
        ImageClassifier(time=given.time, n_jobs=1).fit(train.images, truth).save(given.model)
    model = CompactClassifier.load(given.model)
    calibrating = test.images[::2]
    label = None if model.classes.dtype.kind in "UO" else -1
    background = None
    if not given.no_background:
        others = load_images("cifar10", "train", given.data, mode="gray").images
        background = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in others[:_BACKGROUND]]
    rule = learn_unknown_rule(
        model, train.images, calibrating, background=background, unknown_label=label
    )
    flowers = given.data / "flowers" / "flowers128.tar"
    photographs = load_images(flowers, "train", size=(128, 128), mode="gray").images
    digits = test.subset(np.arange(1, len(test), 2))
    made = scenes(digits, photographs, given.n)
    figures = measured(replace(model, unknown=rule), made, given.least)
    text = json.dumps(figures, indent=1) + "\n"
    sys.stdout.write(text)
    if given.json is not None:
        given.json.write_text(text)


if __name__ == "__main__":
    main()
