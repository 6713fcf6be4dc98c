"""What a refit, learning on and splits by groups are worth.

    python -m benchmarks.after_training refit --data DIR --set NAME --seed 0 --json FILE
    python -m benchmarks.after_training pictures --data DIR --set NAME --seed 0 --json FILE
    python -m benchmarks.after_training class --data DIR --set NAME --seed 0 --json FILE
    python -m benchmarks.after_training groups --data DIR --set NAME --seed 0 --json FILE

A third of the pictures of a set, or more, is held back from all. Of the others `visionshare train`
holds out a fifth, searches for some seconds, learns, tests, and learns again from all. Both
classifiers are compared on the pictures that neither has seen, for several seeds.

`pictures`, `class`: a tenth of the pictures, or a class, comes later. A classifier of the others,
of the recipe `glyphs`, learns on from all; the same recipe learns from the start. A search, which
`visionshare train` makes before such a start, takes some times as long again.

`groups`: of each of 200 pictures a burst of five is made, shifted and lit a little differently.
The recipe `glyphs` reports a test error with pictures split at random and with bursts kept
together; the pictures that no training sees say what the error is.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from benchmarks.picture_sets import load
from visionshare.classifier import CompactClassifier
from visionshare.datasets import ImageSet
from visionshare.datasets.sampling import stratified_mask
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.recipe_search import search_recipe
from visionshare.image_classifier.state import SearchSettings
from visionshare.recipes import Recipe, TrainResult, train
from visionshare.recipes.folder import MEASURED
from visionshare.recipes.own_pictures import PictureOptions, recipe_for_pictures, recipe_from

__all__ = ["by_groups", "learning_on", "main", "refit"]

SETS = ("digits", "mnist", "fashion-mnist", "chars74k", "brodatz")
_MOST, _MOST_BACK, _SECONDS, _SEEDS = 1000, 5000, 40.0, 3
_BURSTS, _BURST = 200, 5


def parts(name: str, data: Path, seed: int, most: int = _MOST) -> tuple[ImageSet, ImageSet]:
    """Return some pictures of a set, and others that no training sees: a third or more."""
    images, _ = load(name, data)
    fraction = min(2 / 3, most / len(images))
    seen = stratified_mask(images.labels, fraction, seed)
    back = np.flatnonzero(~seen)
    back = np.random.default_rng(seed).permutation(back)[:_MOST_BACK]
    return images.subset(np.flatnonzero(seen)), images.subset(back)


def write(images: ImageSet, path: Path) -> str:
    """Write pictures and the names of their classes as `visionshare train` takes them."""
    np.savez(path, images=images.images, labels=np.asarray(images.classes)[images.labels])
    return str(path)


def searched(source: str, out: Path, seconds: float, jobs: int, seed: int = 0) -> Recipe:
    """Return the recipe that a search chooses for pictures."""
    base = recipe_for_pictures(source, PictureOptions(), [f"seed={seed}"], searches=True).recipe
    settings = SearchSettings(seconds=seconds)
    return search_recipe(base, out, Budget.of(None), settings, jobs).recipe


def error(classifier: CompactClassifier, images: ImageSet) -> float:
    """Return the share of pictures that get a wrong class."""
    return float(np.mean(classifier.predict(images.images) != truth(classifier, images)))


def truth(classifier: CompactClassifier, images: ImageSet) -> Any:
    """Return the labels of pictures in the type of a classifier's."""
    return np.asarray(images.classes)[images.labels].astype(classifier.classes_.dtype)


def refit(name: str, data: Path, seed: int = 0, jobs: int = 2) -> dict[str, Any]:
    """Return the errors on pictures that neither run saw, without and with a refit."""
    seen, back = parts(name, data, seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        recipe = searched(write(seen, place / "p.npz"), place / "s", _SECONDS, jobs, seed)
        found: dict[str, Any] = {"set": name, "seed": seed, "held_back": len(back)}
        begun = time.perf_counter()
        errors = []
        for number in range(_SEEDS):
            out = place / f"{number}"
            result = train(recipe.model_copy(update={"seed": number}), out, jobs=jobs)
            tested = CompactClassifier.load(out / MEASURED)
            errors.append((error(tested, back), error(result.classifier, back)))
        found["held-out run: errors"], found["refit: errors"] = zip(*errors, strict=True)
        found["seconds of both"] = (time.perf_counter() - begun) / _SEEDS
        found["chosen"] = recipe.description
    return found


def learning_on(name: str, data: Path, what: str, seed: int = 0, jobs: int = 2) -> dict[str, Any]:
    """Return error and seconds of learning on, and of a training from the start."""
    seen, back = parts(name, data, seed)
    known = np.arange(len(seen)) % 10 > 0
    if what == "class":
        known = seen.labels != seen.labels.max()
    found: dict[str, Any] = {"set": name, "what": what, "seed": seed, "held_back": len(back)}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        glyphs = PictureOptions(recipe="glyphs")

        def from_the_start(images: ImageSet, out: str) -> tuple[str, TrainResult, float]:
            source = write(images, place / f"{out}.npz")
            recipe = recipe_for_pictures(source, glyphs, [f"seed={seed}"]).recipe
            begun = time.perf_counter()
            result = train(recipe, place / out, jobs=jobs)
            return source, result, time.perf_counter() - begun

        _, before, _ = from_the_start(seen.subset(np.flatnonzero(known)), "before")
        found["before: error"] = error(before.classifier, back)
        source, start, seconds = from_the_start(seen, "start")
        found["start: error"], found["start: seconds"] = error(start.classifier, back), seconds
        found["start: test error"] = start.metrics["test_error_rate"]
        own = recipe_from(source, str(place / "before"), PictureOptions())
        begun = time.perf_counter()
        on = train(own.recipe, place / "on", jobs=jobs)
        found["on: seconds"] = time.perf_counter() - begun
        found["on: error"] = error(on.classifier, back)
        found["on: test error"] = on.metrics["test_error_rate"]
    return found


def write_bursts(images: ImageSet, folder: Path, seed: int) -> str:
    """Write a burst of each picture into folders of classes: ``CLASS/BURST_NUMBER.png``."""
    rng = np.random.default_rng(seed)
    for burst, (image, label) in enumerate(zip(images.images, images.labels, strict=True)):
        place = folder / images.classes[label]
        place.mkdir(parents=True, exist_ok=True)
        for number in range(_BURST):
            # 1) half a pixel aside, 2) a little lighter or darker, 3) the noise of a camera
            moved = np.eye(2, 3, dtype=np.float32)
            moved[:, 2] = rng.uniform(-0.5, 0.5, 2)
            size = image.shape[1], image.shape[0]
            shot = cv2.warpAffine(image, moved, size, borderMode=cv2.BORDER_REPLICATE)
            shot = shot * rng.uniform(0.9, 1.1) + rng.normal(0, 3, shot.shape)
            made = Image.fromarray(np.clip(shot, 0, 255).astype(np.uint8))
            made.save(place / f"{burst:04}_{number}.png")
    return str(folder)


def by_groups(name: str, data: Path, seed: int = 0, jobs: int = 2) -> dict[str, Any]:
    """Return test errors of splits that leak and that keep bursts together, and true errors."""
    seen, back = parts(name, data, seed, _BURSTS)
    found: dict[str, Any] = {"set": name, "seed": seed, "bursts": len(seen)}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source = write_bursts(seen, place / "bursts", seed)
        for split, groups in (("leaking", None), ("grouped", "^([0-9]+)_")):
            options = PictureOptions(recipe="glyphs", groups=groups, refit=False)
            recipe = recipe_for_pictures(source, options, [f"seed={seed}"]).recipe
            result = train(recipe, place / split, jobs=jobs)
            found[f"{split}: reported"] = result.metrics["test_error_rate"]
            found[f"{split}: true"] = error(result.classifier, back)
    return found


def main() -> None:
    """Measure one set, and add the figures to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["refit", "pictures", "class", "groups"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    if options.what == "refit":
        row = refit(options.set, options.data, options.seed)
    elif options.what == "groups":
        row = by_groups(options.set, options.data, options.seed)
    else:
        row = learning_on(options.set, options.data, options.what, options.seed)
    with options.json.open("a") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
