"""What a refit on all pictures is worth.

    python -m benchmarks.after_training refit --data DIR --set NAME --seed 0 --json FILE

A third of the pictures of a set is held back from all. Of the others `visionshare train` holds out
a fifth, searches for a minute, learns and tests; then the same recipe is run with a refit. Both
classifiers are compared on the third that neither has seen.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.picture_sets import load
from visionshare.classifier import CompactClassifier
from visionshare.datasets import ImageSet
from visionshare.datasets.sampling import stratified_mask
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.recipe_search import search_recipe
from visionshare.image_classifier.state import SearchSettings
from visionshare.recipes import Recipe, train
from visionshare.recipes.own_pictures import PictureOptions, recipe_for_pictures

__all__ = ["main", "refit"]

SETS = ("digits", "mnist", "fashion-mnist", "chars74k", "brodatz")
_MOST, _BACK, _SECONDS = 1800, 1 / 3, 60.0


def parts(name: str, data: Path, seed: int) -> tuple[ImageSet, ImageSet]:
    """Return some pictures of a set, and a third of them that no training sees."""
    images, _ = load(name, data)
    mask = stratified_mask(images.labels, min(1.0, _MOST / len(images)), seed)
    images = images.subset(np.flatnonzero(mask))
    back = stratified_mask(images.labels, _BACK, seed)
    return images.subset(np.flatnonzero(~back)), images.subset(np.flatnonzero(back))


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
        for again in (False, True):
            begun = time.perf_counter()
            result = train(
                recipe.model_copy(update={"refit": again}), place / f"{again}", jobs=jobs
            )
            kind = "refit" if again else "held-out run"
            found[f"{kind}: error"] = error(result.classifier, back)
            found[f"{kind}: seconds"] = time.perf_counter() - begun
            found["test error"] = result.metrics["test_error_rate"]
        found["chosen"] = recipe.description
    return found


def main() -> None:
    """Measure one set, and add the figures to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["refit"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    row = refit(options.set, options.data, options.seed)
    with options.json.open("a") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
