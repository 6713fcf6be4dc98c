"""Trials in a folder, so that a search that is stopped goes on where it was."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

from visionshare.classifier import CompactClassifier
from visionshare.datasets import ImageSet
from visionshare.errors import VisionshareError
from visionshare.files.durable import make_folder, write_text
from visionshare.files.fingerprints import array_fingerprint, spec_fingerprint
from visionshare.recipes.schema import Recipe, as_settings

# Characters of the fingerprint that names a trial.
_KEY = 32


def is_trial_file(path: Path) -> bool:
    """Return whether a name is that of a file of :class:`KeptTrials`."""
    name = rf"[0-9a-f]{{{_KEY}}}\.(json|safetensors)"
    return re.fullmatch(name, path.name) is not None


class KeptTrials:
    """The classifiers of trials, by the recipe and the images that they were learned from."""

    def __init__(self, folder: Path, training: ImageSet) -> None:
        self._folder = folder
        taught = [] if training.taught is None else [training.taught]
        self._images = array_fingerprint(training.images, training.labels, *taught)

    def read(self, recipe: Recipe, n_images: int) -> tuple[CompactClassifier, float] | None:
        """Return a recipe's classifier of so many images, and its seconds."""
        # None if none is kept. Files that are broken count as none: the trial is made again.
        classifier, seconds = self._files(recipe, n_images)
        try:
            took = float(json.loads(seconds.read_text("utf-8"))["seconds"])
            found = CompactClassifier.load(classifier)
        except (OSError, ValueError, KeyError, TypeError, VisionshareError):
            return None
        return (found, took) if math.isfinite(took) else None

    def write(
        self, recipe: Recipe, n_images: int, classifier: CompactClassifier, seconds: float
    ) -> None:
        """Keep a classifier; what is kept partly is not read."""
        make_folder(self._folder)
        file, of_seconds = self._files(recipe, n_images)
        classifier.save(file)
        write_text(of_seconds, json.dumps({"seconds": seconds}) + "\n")

    def _files(self, recipe: Recipe, n_images: int) -> tuple[Path, Path]:
        about = {"recipe": as_settings(recipe), "images": self._images, "learning": n_images}
        key = spec_fingerprint(about, {})[:_KEY]
        return self._folder / f"{key}.safetensors", self._folder / f"{key}.json"
