"""Chars74K's good photographs of digits and capitals, learned from half of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scripts.reproduce.results import table
from visionshare import PatchTemplates, ShareBoost
from visionshare.columns import ArrayColumns
from visionshare.datasets import elastic_deformations, load_dataset

SIDE = 28
ROUNDS = (50, 100)
COPIES = 2


def photographs(data: Path, jobs: int, quick: bool) -> list[str]:
    """Return the page's paragraphs of the photographs, or why there are none."""
    if not (data / "chars74k").is_dir():
        return ["## Photographs", f"Chars74K is not at hand (no folder chars74k in {data.name})."]
    images, labels, classes = _all(data)
    training = _half(labels)
    rounds = (10, 20) if quick else ROUNDS
    rows = []
    for name, prepare in (("as they are", _shrunk), ("ink light", _light)):
        held = prepare(images)
        judged = _accuracy(*_cut(held, labels, training, True), rounds, jobs, quick)
        rows.append([name, *judged])
        print(rows[-1], flush=True)
    best = max(rows, key=lambda row: float(row[-1]))
    held = {"as they are": _shrunk, "ink light": _light}[best[0]](images)
    final = _accuracy(*_cut(held, labels, training, False), rounds, jobs, quick)
    header = ["", *[f"{n} features" for n in rounds]]
    return [
        "## Photographs: Chars74K, good images",
        f"{len(labels)} photographs of digits and capitals, {len(classes)} classes, 64×64 shrunk "
        f"to {SIDE}×{SIDE}. A seeded half of each class trains, with {COPIES} deformed copies of "
        "each image; the other half tests, once. A quarter of the training half judged what to do "
        "with them before; accuracy in percent:",
        table(header, [[f"judged on the training half, {row[0]}", *row[1:]] for row in rows]),
        "*Ink light*: contrast stretched, and an image turned round where its border is lighter "
        "than its middle. On the test half, O and 0, I and 1 counted apart:",
        table(header, [[f"{best[0]}", *final]]),
    ]


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
    images: np.ndarray, labels: np.ndarray, training: np.ndarray, judging: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    if not judging:
        return images[training], labels[training], images[~training], labels[~training]
    places = np.flatnonzero(training)
    judge = places[np.random.default_rng(1).random(len(places)) < 0.25]
    others = np.setdiff1d(places, judge)
    return images[others], labels[others], images[judge], labels[judge]


def _shrunk(images: np.ndarray) -> np.ndarray:
    import cv2

    return np.stack([cv2.resize(i, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for i in images])


def _light(images: np.ndarray) -> np.ndarray:
    found = []
    for image in _shrunk(images).astype(np.float32):
        low, high = np.percentile(image, (2, 98))
        values = np.clip((image - low) * (255 / max(high - low, 1.0)), 0, 255)
        inner = values[6:-6, 6:-6].mean()
        border = np.concatenate([values[:3].ravel(), values[-3:].ravel(), values[:, :3].ravel()])
        found.append(255 - values if border.mean() > inner else values)
    return np.round(np.stack(found)).astype(np.uint8)


def _accuracy(
    images: np.ndarray,
    labels: np.ndarray,
    tests: np.ndarray,
    truth: np.ndarray,
    rounds: tuple[int, ...],
    jobs: int,
    quick: bool,
) -> list[str]:
    copies = [part for _, _, part in elastic_deformations(images, COPIES, alpha=0.8, shear=0.15)]
    more = np.concatenate([images, *copies])
    family = PatchTemplates(
        7, 60 if quick else 200, 4, (6.5,), cut=0.45, padding=2, contrast="unit"
    ).fit(images)
    columns = ArrayColumns.from_family(family, more, "float16", jobs)
    learner = ShareBoost(rounds=rounds[-1], criterion="orthogonal", alpha=1e-3, n_jobs=jobs)
    model = learner.fit(columns, np.tile(labels, COPIES + 1)).to_classifier(family)
    return [f"{100 * np.mean(model.at(n).predict(tests, jobs) == truth):.1f}" for n in rounds]
