"""Made frames of a camera: a digit with specks, a shadow, a vignette or off center; or nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.datasets.frames import gray_of_frame
from visionshare.export.c.preparation import CELLS, least_margin, whole_preprocessing

KINDS = ("specks", "shadows", "vignettes", "off-center", "empty")
SHAPE = (240, 320)


def made_frame(digit: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return a gray frame of a digit in dark ink on paper; of paper alone for "empty"."""
    import cv2

    height, width = SHAPE
    y, x = np.mgrid[:height, :width]
    paper = rng.uniform(140, 235)
    ink = rng.uniform(15, 80)
    # 1) a digit, or what empty frames have in its place
    dark = np.zeros(SHAPE)
    if kind == "empty":
        kind = str(rng.choice(("nothing", *KINDS[:3])))
    else:
        side = int(rng.integers(50, 120) if kind == "off-center" else rng.integers(90, 190))
        large = cv2.resize(digit, (side, side), interpolation=cv2.INTER_CUBIC)
        rows, columns = np.nonzero(large > 40)
        large = large[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] / 255.0
        room = [side - own for side, own in zip(SHAPE, large.shape, strict=True)]
        top, left = (side // 2 + int(rng.integers(-12, 13)) for side in room)
        if kind == "off-center":
            top, left = (int(rng.integers(6, side - 6)) for side in room)
        dark[top : top + large.shape[0], left : left + large.shape[1]] = large
    if kind == "specks":
        for _ in range(int(rng.integers(1, 7))):
            distance = np.hypot(y - rng.uniform(0, height), x - rng.uniform(0, width))
            speck = np.clip(rng.uniform(1, 4.5) + 0.5 - distance, 0, 1) * rng.uniform(0.5, 1)
            dark = np.maximum(dark, speck)
    # 2) light
    light = np.ones(SHAPE)
    down = y - height / 2
    across = x - width / 2
    if kind == "shadows":
        angle = rng.uniform(0, 2 * np.pi)
        distance = down * np.sin(angle) + across * np.cos(angle) - rng.uniform(60, 150)
        steps = np.clip(4 * distance / rng.uniform(2, 25), -50, 50)
        light -= rng.uniform(0.2, 0.6) / (1 + np.exp(-steps))
    if kind == "vignettes":
        corner = (height**2 + width**2) / 4
        light -= rng.uniform(0.3, 0.75) * (down**2 + across**2) / corner
    # 3) lens and sensor
    picture = (paper + (ink - paper) * dark) * light
    picture = cv2.GaussianBlur(picture, (0, 0), rng.uniform(0.5, 2))
    picture += rng.normal(0, rng.uniform(1, 5), SHAPE)
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8)


def made_frames(
    images: np.ndarray, labels: np.ndarray, seed: int, n: int = 200
) -> Iterator[tuple[str, np.ndarray, int]]:
    """Yield the kind of each frame, the frame, and the digit that it shows; −1 for none."""
    rng = np.random.default_rng(seed)
    for number, chosen in enumerate(rng.choice(len(images), n, replace=False)):
        kind = KINDS[number % len(KINDS)]
        label = -1 if kind == "empty" else int(labels[chosen])
        yield kind, made_frame(images[chosen], kind, rng), label


def counts(
    model: CompactClassifier, frames: list[tuple[str, np.ndarray, int]], located: bool
) -> dict[str, Counter[str]]:
    """Return how many frames of each kind are read right, wrong, or refused.

    Located, a frame without a piece of ink inside is refused, and one whose class is unsure.
    """
    steps = replace(whole_preprocessing(model), crop="located" if located else True)
    size = (model.image_shape[0], model.image_shape[1])
    found = {kind: Counter[str]() for kind in (*KINDS, "all")}
    for kind, frame, label in frames:
        raster = steps.apply(gray_of_frame(frame, "gray", CELLS), size)
        scores = model.decision_function(raster[None])[0]
        answer = "right" if int(model.classes_[scores.argmax()]) == label else "wrong"
        second, best = np.sort(scores)[-2:]
        if located and (not raster.any() or best - second < least_margin(model)):
            answer = "refused"
        found[kind][answer] += 1
        found["all"][answer] += 1
    return found


def main(data: str, seed: int = 100) -> None:
    """Print the counts of the bundled classifiers, before and after, for frames of one seed."""
    from visionshare import load
    from visionshare.datasets import load_dataset

    test = load_dataset("mnist", "test", data_dir=data)
    frames = list(made_frames(test.images, test.labels, seed))
    for name in ("mnist-10k", "mnist-4k"):
        for located in (False, True):
            found = counts(load(name), frames, located)
            print(json.dumps({"classifier": name, "located": located, **found}))


if __name__ == "__main__":
    import sys

    main(sys.argv[1], *map(int, sys.argv[2:]))
