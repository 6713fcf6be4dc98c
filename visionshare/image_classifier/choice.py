"""From training images to the choice: the best proposal, and the recipe that learns it from all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visionshare.datasets import ImageSet, Preprocessing
from visionshare.errors import InputError
from visionshare.image_classifier.augmenting import are_glyphs
from visionshare.image_classifier.budget import Limits
from visionshare.image_classifier.choosing import Options, Search
from visionshare.image_classifier.copies import two_parts
from visionshare.image_classifier.kept_trials import KeptTrials
from visionshare.image_classifier.proposals import Data
from visionshare.image_classifier.trials import Trial, Trials
from visionshare.recipes import Recipe

__all__ = ["Choice", "choose"]

# Images that a training as long as the last one learns from, to see how sure it is.
_CALIBRATING = 5000


@dataclass(frozen=True)
class Choice:
    """What a search chose."""

    best: Trial
    trials: list[Trial]
    data: Data
    epochs: int
    seed: int
    class_weight: dict[Any, float] | str | None
    is_honest: bool
    max_flash: int | None = None
    majority: tuple[str, float] = ("", 0.0)

    @property
    def error(self) -> float:
        """Fraction of wrong held-out images, the least of several; NaN where none were held out."""
        return self.best.error if self.is_honest else math.nan

    def recipe(self, preprocessing: Preprocessing | None = None) -> Recipe:
        """Return the recipe that learns the best from all training images."""
        return self.best.proposal.recipe(
            self.data,
            epochs=self.epochs,
            seed=self.seed,
            class_weight=self.class_weight,
            preprocessing=preprocessing,
            max_flash=self.max_flash,
        )


def choose(
    training: ImageSet,
    limits: Limits,
    options: Options,
    seed: int = 0,
    n_jobs: int = 1,
    class_weight: dict[Any, float] | str | None = None,
    kept: KeptTrials | None = None,
    validation: ImageSet | None = None,
) -> Choice:
    """Search for what learns best from images and keeps within limits."""
    images, shape = training.images, training.images.shape[1:]
    if limits.flash is not None:
        _check_whole(options, images)
    raster = {1: (1, *shape, 1), 2: (*shape, 1)}.get(len(shape), shape)
    data = Data(raster, len(images), len(training.classes), are_glyphs(images))
    learning, held_out = two_parts(training, seed, validation)
    is_honest = len(held_out) > 0
    if not is_honest:
        held_out = learning
    own = Data(raster, len(learning), data.n_classes, data.is_glyphs)
    trials = Trials(own, learning, held_out, seed, n_jobs, class_weight, kept)
    search = Search(data, trials, limits, options, seed)
    best = search.run()
    epochs, flash = data.epochs, limits.flash
    # Greedy trials are as long as the last training, and whole numbers have scales of their own.
    calibrates = is_honest and best.proposal.structure is not None and flash is None
    calibrating = search.trials.fewer(_CALIBRATING)
    if options.seconds is not None and best.proposal.structure is not None:
        seen = data.n + calibrates * len(calibrating.learning)
        times = seen / len(search.trials.learning)
        epochs = _affordable(best, search.done, options.left, times, epochs)
    if calibrates:
        # The longer a classifier learns, the surer it is: a short trial says too little of it.
        best = replace(best, temperature=calibrating.run(best.proposal, epochs).temperature)
    majority = _majority(held_out)
    return Choice(best, search.done, data, epochs, seed, class_weight, is_honest, flash, majority)


def _majority(images: ImageSet) -> tuple[str, float]:
    """Return the commonest class of images and the error rate of always answering it."""
    counts = np.bincount(images.labels)
    return images.classes[int(counts.argmax())], 1 - float(counts.max()) / len(images)


def _affordable(best: Trial, done: list[Trial], left: float, times: float, most: int) -> int:
    """Return the epochs on so many times a trial's images that the seconds which are left allow."""
    # Features are chosen once more by each member; a trial may have found them chosen.
    choosing = best.proposal.members * max(trial.choosing for trial in done)
    per_epoch = times * max(best.seconds - best.choosing, 1e-6) / max(1, best.epochs)
    return int(np.clip((0.9 * left - choosing) / per_epoch, 1, most))


def _check_whole(options: Options, images: np.ndarray) -> None:
    """Check that there is something to learn in whole numbers."""
    if options.features != "auto":
        accepted = "'auto' where flash is limited: chosen features of a pool have floats"
        raise InputError("features", options.features, accepted)
    if images.ndim == 2:
        raise InputError("budget", "flash, of vectors", "flash of classifiers of images")
