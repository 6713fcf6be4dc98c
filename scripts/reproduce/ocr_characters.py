"""Chars74K's good photographs of digits and capitals, learned from half of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scripts.reproduce.results import render, table
from visionshare import PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import Augmentation, augmented_copies, load_dataset

SIDE = 28
ROUNDS = (50, 100)
COPIES = 2


def photographs(data: Path, jobs: int, quick: bool) -> tuple[str, dict[str, list[list[str]]]]:
    """Return the page's part about the photographs, or why there is none, and its figures."""
    if not (data / "chars74k").is_dir():
        return render("ocr/without-photographs", folder=data.name), {}
    images, labels, classes = _all(data)
    training = _half(labels)
    rounds = (10, 20) if quick else ROUNDS
    rows = []
    for name, prepare in PREPARATIONS.items():
        parts = _cut(prepare(images), labels, training, True)
        rows.append([name, *_accuracy(*parts, rounds, jobs, quick)])
        print(rows[-1], flush=True)
    best = max(rows, key=lambda row: float(row[-1]))[0]
    parts = _cut(PREPARATIONS[best](images), labels, training, False)
    tested = [best, *_accuracy(*parts, rounds, jobs, quick)]
    header = ["", *[f"{n} features" for n in rounds]]
    text = render(
        "ocr/photographs",
        n_images=len(labels),
        n_classes=len(classes),
        side=SIDE,
        copies=COPIES,
        validated=table(header, [[f"validation part, {row[0]}", *row[1:]] for row in rows]),
        tested=table(header, [tested]),
    )
    return text, {"validation": rows, "test": [tested]}


def _all(data: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    parts = [load_dataset("chars74k", split, data) for split in ("train", "test")]
    images = np.concatenate([part.images for part in parts])
    return images, np.concatenate([part.labels for part in parts]), parts[0].classes


def _half(labels: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(0)
    chosen = np.zeros(len(labels), bool)
    for c in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == c))
        chosen[members[: len(members) // 2]] = True
    return chosen


def _cut(
    images: np.ndarray, labels: np.ndarray, training: np.ndarray, validating: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    if not validating:
        return images[training], labels[training], images[~training], labels[~training]
    rows = np.flatnonzero(training)
    validation = rows[np.random.default_rng(1).random(len(rows)) < 0.25]
    others = np.setdiff1d(rows, validation)
    return images[others], labels[others], images[validation], labels[validation]


def _shrunk(images: np.ndarray) -> np.ndarray:
    import cv2

    return np.stack([cv2.resize(i, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for i in images])


def _light(images: np.ndarray) -> np.ndarray:
    prepared = []
    for image in _shrunk(images).astype(np.float32):
        low, high = np.percentile(image, (2, 98))
        values = np.clip((image - low) * (255 / max(high - low, 1.0)), 0, 255)
        inner = values[6:-6, 6:-6].mean()
        border = np.concatenate([values[:3].ravel(), values[-3:].ravel(), values[:, :3].ravel()])
        prepared.append(255 - values if border.mean() > inner else values)
    return np.round(np.stack(prepared)).astype(np.uint8)


PREPARATIONS = {"unchanged": _shrunk, "ink light": _light}


def _accuracy(
    images: np.ndarray,
    labels: np.ndarray,
    tests: np.ndarray,
    truth: np.ndarray,
    rounds: tuple[int, ...],
    jobs: int,
    quick: bool,
) -> list[str]:
    deformed = Augmentation(alpha=0.8, shear=0.15)
    copies = [part for _, _, part in augmented_copies(images, deformed, COPIES)]
    more = np.concatenate([images, *copies])
    family = PatchTemplates(
        7, 60 if quick else 200, 4, (6.5,), cut=0.45, padding=2, contrast="unit"
    ).fit(images)
    columns = ArrayColumns.from_family(family, more, "float16", jobs)
    learner = ShareBoost(rounds=rounds[-1], criterion="orthogonal", alpha=1e-3, n_jobs=jobs)
    model = learner.fit(columns, np.tile(labels, COPIES + 1)).to_classifier(family)
    return [f"{100 * np.mean(model.at(n).predict(tests, jobs) == truth):.1f}" for n in rounds]
