"""Teachers of images in memory: what they say of them, as they were given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from visionshare.datasets import ImageSet, Preprocessing
from visionshare.datasets.intake import Intake
from visionshare.errors import InputError
from visionshare.image_classifier.trials import ProposalLearner
from visionshare.recipes.schema import TeacherPart
from visionshare.recipes.teachers import (
    PRETRAINED,
    SELF,
    TaughtRun,
    check_source,
    n_copies,
    taught_images,
)  # fmt: skip


def teacher_part(teacher: Any, features: Any, unlabeled: Any) -> TeacherPart | None:
    """Return who teaches, checked before any work; None where nobody does."""
    if teacher is None:
        if unlabeled is not None:
            raise InputError("unlabeled", "images", "None where there is no teacher")
        return None
    if not isinstance(teacher, (str, os.PathLike)) or not os.fspath(teacher):
        raise InputError("teacher", teacher, "'self', 'pretrained', a file, or None")
    if features != "auto":
        accepted = "None, where a pool is named: what is chosen greedily learns from labels alone"
        raise InputError("teacher", teacher, accepted)
    part = TeacherPart(source=os.fspath(teacher))
    check_source(part.source)
    return part


def without_copies_of_others(learner: ProposalLearner, rows: np.ndarray) -> ImageSet | None:
    """Return the images without a class, less the copies of images that do not learn."""
    unlabeled = learner.unlabeled
    if unlabeled is None or learner.teacher is None:
        return unlabeled
    n = len(learner.images)
    n_copied = n * n_copies(learner.teacher, n)
    copied = np.arange(n_copied).reshape(-1, n)[:, rows].ravel()
    return unlabeled.subset(np.concatenate([copied, np.arange(n_copied, len(unlabeled))]))


def taught_learner(
    learner: ProposalLearner,
    intake: Intake | None,
    images: Any,
    unlabeled: Any,
    classes: Sequence[Any],
) -> ProposalLearner:
    """Return a learner with what its teacher says of its images, and of those without a class."""
    part = learner.teacher
    assert part is not None
    if intake is None:
        raise InputError("teacher", part.source, "None, where examples are vectors")
    more = None
    if unlabeled is not None:
        rasters = intake.apply(unlabeled)
        if len(rasters) == 0:
            raise InputError("unlabeled", "no images", "one image or more, or None")
        labels = np.zeros(len(rasters), np.int64)
        more = ImageSet(rasters, labels, learner.images.classes, "unlabeled images")
    if part.source == SELF:
        return replace(learner, unlabeled=more)

    def view(shape: tuple[int, ...], steps: Preprocessing) -> tuple[Any, Any]:
        # A classifier takes images as they are given, and says what it does not take.
        if part.source != PRETRAINED:
            return images, unlabeled
        shown = Intake((shape[0], shape[1]), 3, steps, intake.values)
        return shown.apply(images), None if unlabeled is None else shown.apply(unlabeled)

    asked = TaughtRun(learner.class_weight, learner.seed, learner.n_jobs, intake.preprocessing)
    training, more = taught_images(part, (learner.images, more), view, classes, asked)
    return replace(learner, images=training, unlabeled=more)
