"""From training images to the choice: the best proposal, and how it is learned from all images."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from visionshare.answers import LabelRule
from visionshare.datasets import ImageSet
from visionshare.errors import InputError
from visionshare.generators.pretrained.network import kept_activations
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.copies import parts_of, taken
from visionshare.image_classifier.kept_trials import KeptTrials
from visionshare.image_classifier.pretrained import try_pretrained
from visionshare.image_classifier.proposals import Dense
from visionshare.image_classifier.search import search
from visionshare.image_classifier.state import SearchSettings, StructureSearch
from visionshare.image_classifier.teaching import without_copies_of_others
from visionshare.image_classifier.trials import ProposalLearner, Trial, Trials
from visionshare.recipes import Recipe
from visionshare.recipes.teachers import SELF


@dataclass(frozen=True)
class Choice:
    """What a search chose."""

    best: Trial
    trials: list[Trial]
    #: Learns from all training images.
    learner: ProposalLearner
    #: In which it learns the best.
    epochs: int
    #: Whether trials were compared on images that they did not learn from.
    is_honest: bool
    #: The commonest class of the images that trials are compared on, and the error rate of always
    #: answering it.
    majority: tuple[str, float] = ("", 0.0)
    #: With the size of the images, where it is not that of the others and a recipe was given.
    base: Recipe | None = None

    @property
    def error(self) -> float:
        """Fraction of wrong held-out images, the least of several; NaN where none were held out."""
        return self.best.error if self.is_honest else math.nan

    @property
    def recipe(self) -> Recipe:
        """The recipe that learns the best from all training images."""
        return self.learner.recipe(self.best.proposal, self.epochs)


def choose(
    learner: ProposalLearner,
    budget: Budget,
    settings: SearchSettings,
    validation: ImageSet | None = None,
    kept: KeptTrials | None = None,
) -> Choice:
    """Search for what learns best from images and keeps within a budget."""
    training = learner.images
    data = learner.data
    if budget.flash is not None:
        _check_whole(settings, training.images)
    learner = replace(learner, max_flash=budget.flash)
    has_labels = training.answers is not None and isinstance(training.answers.rule, LabelRule)
    if has_labels and budget.flash is not None:
        raise InputError("budget", "flash", "no flash for several labels")
    if learner.teacher is not None or has_labels:
        # What is chosen from pools has a loss of labels alone.
        settings = replace(settings, n_greedy=0)
    # A teacher of the same kinds is learned when the kind is known: trials learn without it.
    waits = learner.teacher is not None and learner.teacher.source == SELF
    # 1) images to learn from, and others to compare by
    limits = (settings.n_learning_longer, settings.n_compared)
    parts = parts_of(training, learner.seed, validation, *limits)
    learning = taken(training, parts.learning)
    held_out = taken(parts.compared_of, parts.compared)
    is_honest = len(held_out) > 0
    if not is_honest:
        held_out = learning
    # 2) search
    part = replace(
        learner, data=replace(data, n=len(learning)), images=learning,
        preprocessing=None, max_flash=None,
        teacher=None if waits else learner.teacher,
        unlabeled=None if waits else without_copies_of_others(learner, parts.learning),
    )  # fmt: skip
    trials = Trials(part, held_out, settings.client, kept)
    state = StructureSearch.of(data, trials, budget, settings)
    # A teacher is there for a small classifier; the network's features are weighed by class.
    tries_network = is_honest and learner.teacher is None and training.answers is None
    transfer = settings.transfer if tries_network else None
    with kept_activations():
        best = search(state, lambda found: try_pretrained(found, transfer, learner, parts))
    if isinstance(best.proposal.features, Dense) and transfer is not None:
        learner = transfer.learner(learner, np.arange(len(training)))
        return Choice(best, state.done, learner, 0, is_honest, _majority(held_out), transfer.base)
    # 3) how many epochs is there time for? how sure is a classifier after as many?
    has_structure = best.proposal.structure is not None
    if learner.teacher is not None and not has_structure:
        accepted = "None: no layers fit the budget and the images, so there is nothing to teach"
        raise InputError("teacher", learner.teacher.source, accepted)
    # Greedy trials are as long as the last training, and whole numbers have scales of their own.
    calibrates = is_honest and has_structure and budget.flash is None
    calibrating = state.trials.fewer(settings.n_calibrating)
    epochs = learner.counted.epochs
    if waits:
        calibrating = calibrating.taught(learner.teacher, learner.unlabeled)
    if settings.seconds is not None and has_structure:
        seen = float(learner.counted.n + calibrates * calibrating.learner.counted.n)
        seen += settings.n_refit
        if waits:
            seen *= _times_of_teaching(learner)
        epochs = _affordable(best, state, seen / state.trials.learner.counted.n)
    if calibrates:
        # The longer a classifier learns, the surer it is: a short trial says too little of it.
        (calibrated,) = calibrating.run([best.proposal], epochs)
        if not isinstance(calibrated, Trial):
            raise calibrated
        best = replace(best, temperature=calibrated.temperature, rule=calibrated.rule)
    return Choice(best, state.done, learner, epochs, is_honest, _majority(held_out))


def _times_of_teaching(learner: ProposalLearner) -> float:
    """Return by how much a teacher of the same kinds makes a training longer."""
    part = learner.teacher
    assert part is not None
    # It is as much wider in what it sees and in what it gives; and is asked in each epoch.
    return 1 + 4 / 3 * part.members * part.width**2


def _majority(images: ImageSet) -> tuple[str, float]:
    """Return the commonest class of images and the error rate of always answering it."""
    counts = np.bincount(images.labels)
    return images.classes[int(counts.argmax())], 1 - float(counts.max()) / len(images)


def _affordable(best: Trial, state: StructureSearch, times: float) -> int:
    """Return the epochs on so many times a trial's images that the seconds which are left allow."""
    # Features are chosen once more by each member; a trial may have found them chosen.
    choosing = best.proposal.members * max(trial.choosing for trial in state.done)
    choosing *= 1 + (state.settings.n_refit > 0)
    per_epoch = times * max(best.seconds - best.choosing, 1e-6) / max(1, best.epochs)
    epochs = (0.9 * state.settings.left - choosing) / per_epoch
    return int(np.clip(epochs, 1, state.data.epochs))


def _check_whole(settings: SearchSettings, images: np.ndarray) -> None:
    """Check that there is something to learn in whole numbers."""
    if settings.features != "auto":
        accepted = "'auto' where flash is limited: chosen features of a pool have floats"
        raise InputError("features", settings.features, accepted)
    if images.ndim == 2:
        raise InputError("budget", "flash, of vectors", "flash of classifiers of images")
