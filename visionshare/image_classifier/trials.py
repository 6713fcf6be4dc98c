"""One trial: a proposal trained on a part of the images and compared on held-out ones."""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier, averaged
from visionshare.datasets import ImageSet
from visionshare.datasets.sampling import stratified_mask
from visionshare.generators.base import FeatureFamily
from visionshare.image_classifier.kept_trials import KeptTrials
from visionshare.image_classifier.proposals import Data, Greedy, Proposal
from visionshare.learners.calibration import fit_temperature, with_an_error
from visionshare.machine.progress import stage
from visionshare.recipes.run import Run
from visionshare.recipes.schema import Recipe, as_settings
from visionshare.recipes.stages.members import choose_features
from visionshare.recipes.stages.tuning import fine_tuned
from visionshare.recipes.training import images_in_memory

__all__ = ["Trial", "Trials", "learn_from_family", "table"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trial:
    """What a proposal gave."""

    proposal: Proposal
    error: float
    doubts: np.ndarray
    temperature: float
    classifier: CompactClassifier
    allowed: bool
    epochs: int
    seconds: float
    choosing: float = 0.0

    @property
    def doubt(self) -> float:
        """Mean of the doubts."""
        return float(self.doubts.mean())


class Trials:
    """Trials on one pair of parts of the training images."""

    def __init__(
        self,
        data: Data,
        learning: ImageSet,
        held_out: ImageSet,
        seed: int,
        n_jobs: int,
        class_weight: dict[Any, float] | str | None = None,
        kept: KeptTrials | None = None,
    ) -> None:
        self.data, self.learning, self.held_out = data, learning, held_out
        self._seed, self._n_jobs, self._class_weight, self._kept = seed, n_jobs, class_weight, kept
        self._chosen: dict[str, CompactClassifier] = {}
        self._choosing = 0.0

    def fewer(self, most: int) -> Trials:
        """Return trials on so many of the learning images at most, compared on the same images."""
        if most >= len(self.learning):
            return self
        mask = stratified_mask(self.learning.labels, most / len(self.learning), self._seed)
        part = self.learning.subset(np.flatnonzero(mask))
        data = replace(self.data, n=len(part))
        about = (self._seed, self._n_jobs, self._class_weight, self._kept)
        return Trials(data, part, self.held_out, *about)

    def train(self, proposal: Proposal, epochs: int) -> CompactClassifier:
        """Return the classifier of a proposal after so many epochs."""
        features = proposal.features
        if isinstance(features, Greedy) and isinstance(features.pool, FeatureFamily):
            return learn_from_family(
                features.pool, features.rounds, self.learning, self._n_jobs, self._class_weight
            )
        recipe = self._recipe(proposal, epochs)
        with tempfile.TemporaryDirectory(prefix="visionshare-") as folder:
            run = Run(recipe, Path(folder), None, self._n_jobs)
            images = images_in_memory(run, self.learning)
            members = (run.member(number) for number in range(recipe.members))
            return averaged([fine_tuned(one, self._choose(one), images) for one in members])

    def _recipe(self, proposal: Proposal, epochs: int) -> Recipe:
        return proposal.recipe(
            self.data, epochs=epochs, seed=self._seed, class_weight=self._class_weight
        )

    def _choose(self, run: Run) -> CompactClassifier:
        """Return the classifier of the chosen features, which trials of one structure share."""
        key = _key(run.recipe)
        if key not in self._chosen:
            begun = time.perf_counter()
            self._chosen[key] = choose_features(run, images_in_memory(run, self.learning))
            self._choosing += time.perf_counter() - begun
        return self._chosen[key]

    def measure(self, proposal: Proposal, classifier: CompactClassifier) -> Trial:
        """Return what a classifier does with the held-out images."""
        scores = classifier.decision_function(self.held_out.images, self._n_jobs)
        truth = self.held_out.labels.astype(np.int64)
        wrong = float(np.mean(np.argmax(scores, axis=1) != truth))
        counted, true = with_an_error(scores, truth)
        temperature = fit_temperature(counted, true, np.ones(len(true)))
        calibrated = replace(classifier, temperature=temperature)
        doubts = 1 - calibrated.probabilities(scores)[np.arange(len(truth)), truth]
        return Trial(proposal, wrong, doubts, temperature, classifier, True, 0, 0.0)

    def run(self, proposal: Proposal, epochs: int) -> Trial:
        """Train a proposal and measure it."""
        before = self._choosing
        classifier, seconds = self._trained(proposal, epochs)
        choosing = self._choosing - before
        trial = self.measure(proposal, classifier)
        figures = (100 * trial.error, trial.classifier.macs, seconds)
        _logger.info("%s: %.2f %% error, %d multiply-accumulates, %.1f s", proposal, *figures)
        return replace(trial, epochs=epochs, seconds=seconds, choosing=choosing)

    def _trained(self, proposal: Proposal, epochs: int) -> tuple[CompactClassifier, float]:
        """Return the classifier of a proposal and the seconds it took, now or before."""
        features = proposal.features
        has_recipe = not isinstance(features, Greedy) or isinstance(features.pool, str)
        recipe = self._recipe(proposal, epochs) if self._kept is not None and has_recipe else None
        if self._kept is not None and recipe is not None:
            found = self._kept.read(recipe, len(self.learning))
            if found is not None:
                return found
        begun = time.perf_counter()
        with stage(f"trying {proposal}"):
            classifier = self.train(proposal, epochs)
        seconds = time.perf_counter() - begun
        if self._kept is not None and recipe is not None:
            self._kept.write(recipe, len(self.learning), classifier, seconds)
        return classifier, seconds


def is_better(trial: Trial, best: Trial, margin: float) -> bool:
    """Return whether a trial's doubts are less by so many standard errors of the difference."""
    less = best.doubts - trial.doubts
    error = float(less.std()) / np.sqrt(len(less))
    return float(less.mean()) > margin * error


def table(trials: Sequence[Trial], chosen: Proposal | None = None) -> dict[str, list[Any]]:
    """Return trials as columns."""
    # One list for each figure, what was chosen first, then the best.

    def rank(trial: Trial) -> tuple[bool, bool, int, float]:
        return trial.proposal != chosen, not trial.allowed, -trial.epochs, trial.doubt

    ranked = sorted(trials, key=rank)
    return {
        "proposal": [str(trial.proposal) for trial in ranked],
        "error": [trial.error for trial in ranked],
        "doubt": [trial.doubt for trial in ranked],
        "macs": [trial.classifier.macs for trial in ranked],
        "parameters": [trial.classifier.n_parameters for trial in ranked],
        "bytes": [trial.classifier.nbytes for trial in ranked],
        "epochs": [trial.epochs for trial in ranked],
        "seconds": [trial.seconds for trial in ranked],
        "allowed": [trial.allowed for trial in ranked],
    }


def _key(recipe: Recipe) -> str:
    """Return what the choice of features depends on."""
    settings = as_settings(recipe)
    tuning = settings["fine_tuning"] or {}
    parts = [settings["seed"], settings["features"], settings["learner"]]
    parts.append(tuning.get("search_images"))
    return json.dumps(parts, sort_keys=True)


def learn_from_family(
    family: FeatureFamily,
    rounds: int,
    training: ImageSet,
    n_jobs: int = 1,
    class_weight: dict[Any, float] | str | None = None,
) -> CompactClassifier:
    """Return the classifier of a family's features, chosen greedily."""
    from sklearn.base import clone

    from visionshare.columns import ArrayColumns
    from visionshare.learners import ShareBoost
    from visionshare.learners.class_weights import by_number

    fitted = clone(family, safe=False).fit(training.images, training.labels)
    columns = ArrayColumns.from_family(fitted, training.images, "float32", n_jobs)
    learner = ShareBoost(
        min(rounds, fitted.n_features_),
        criterion="orthogonal",
        class_weight=by_number(class_weight, training.classes),
        n_jobs=n_jobs,
    )
    learner.fit(columns, training.labels)
    return learner.to_classifier(fitted, dict(enumerate(training.classes)))
