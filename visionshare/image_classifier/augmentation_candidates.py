"""Augmentations that are compared once more, on more images and in more epochs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from visionshare.image_classifier.proposals import Proposal
from visionshare.image_classifier.trials import Trial

__all__ = ["augmentation_candidates"]

# By how many standard errors of the paired difference a candidate may be behind the best.
_CLOSE = 2.0


def augmentation_candidates(trials: Sequence[Trial], best: Proposal) -> list[Proposal]:
    """Return a proposal with its own augmentation, and with those that were about as good."""
    same = [
        trial
        for trial in trials
        if _without_augmentation(trial) == _without_augmentation(trials[0])
    ]
    own = next((t for t in same if t.proposal.augmentation == best.augmentation), None)
    if own is None:
        return [best]
    found = [best]
    for trial in same:
        behind = trial.doubts - own.doubts
        error = float(behind.std()) / np.sqrt(len(behind))
        if trial is not own and float(behind.mean()) < _CLOSE * error:
            given = trial.proposal
            found.append(replace(best, augmentation=given.augmentation, words=given.words))
    return found


def _without_augmentation(trial: Trial) -> Proposal:
    return replace(trial.proposal, augmentation=None, words="")
