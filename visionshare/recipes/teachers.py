"""Teachers: better classifiers, or networks of others, whose probabilities a small one learns."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from visionshare.class_labels import quoted
from visionshare.classifier import CompactClassifier
from visionshare.datasets import ImageSet, Preprocessing
from visionshare.errors import InputError
from visionshare.learners.calibration import fit_temperature
from visionshare.recipes.onnx_teacher import OnnxTeacher
from visionshare.recipes.schema import TeacherPart
from visionshare.scores import softmax

__all__ = [
    "PRETRAINED",
    "SELF",
    "PictureTeacher",
    "TaughtRun",
    "check_source",
    "learn_pretrained",
    "probabilities_of",
    "read_teacher",
    "taught_images",
]

#: Larger classifiers of the same kind, learned first from the same pictures.
SELF = "self"
#: A logistic regression on the activations of EfficientNet-Lite0.
PRETRAINED = "pretrained"

#: Side at which EfficientNet-Lite0 sees the pictures.
PRETRAINED_SIDE = 128
_FOLDS = 5
# Inverse strength of the ridge on weights of standardized activations.
_STRENGTH = 1e-2


class TaughtRun(NamedTuple):
    """How a teacher is learned and asked."""

    class_weight: Any = None
    seed: int = 0
    n_jobs: int = 1


class PictureTeacher(Protocol):
    """What says how probable the classes of pictures are."""

    @property
    def preprocessing(self) -> Preprocessing: ...

    @property
    def classes_(self) -> np.ndarray: ...

    @property
    def image_shape(self) -> tuple[int, ...]: ...

    def predict_proba(self, images: Any, n_jobs: int = 1) -> np.ndarray: ...


def check_source(source: str) -> None:
    """Check, before any work, that a teacher is there.

    Raises
    ------
    InputError
        If it is no file, no ONNX that can be run, or needs an extra that is not installed.
    ClassifierFileError
        If the file is no classifier.
    """
    if source == PRETRAINED:
        from visionshare.generators.pretrained import efficientnet

        efficientnet.efficientnet_lite0()
    elif source != SELF:
        read_teacher(source)


def read_teacher(source: str | os.PathLike[str]) -> PictureTeacher:
    """Return the teacher of a file: a classifier of any version, or a model in ONNX."""
    if not os.path.isfile(source):
        raise InputError("teacher", os.fspath(source), f"{SELF!r}, {PRETRAINED!r}, or a file")
    if os.fspath(source).lower().endswith(".onnx"):
        return OnnxTeacher(source)
    return CompactClassifier.load(source)


def probabilities_of(
    teacher: PictureTeacher, images: Any, classes: Sequence[Any], n_jobs: int
) -> np.ndarray:
    """Return a teacher's probabilities (n, k), float32, in the order of the classes.

    Raises
    ------
    InputError
        If the teacher has other classes.
    """
    wanted = [str(name) for name in classes]
    known = [str(name) for name in teacher.classes_.tolist()] or sorted(wanted)
    if sorted(known) != sorted(wanted):
        accepted = f"a teacher of the classes of the pictures: {quoted(wanted)}"
        raise InputError("teacher", f"classes {quoted(known)}", accepted)
    said = teacher.predict_proba(images, n_jobs)
    if said.shape[1] != len(known):
        accepted = f"one output for each class: {quoted(wanted)}"
        raise InputError("teacher", f"{said.shape[1]} outputs", accepted)
    return np.asarray(said[:, [known.index(name) for name in wanted]], np.float32)


def taught_images(
    part: TeacherPart,
    labeled: tuple[ImageSet, ImageSet | None],
    view: Callable[[tuple[int, ...], Preprocessing], tuple[Any, Any]],
    names: Sequence[Any],
    run: TaughtRun,
) -> tuple[ImageSet, ImageSet | None]:
    """Return images, and those without a class, with what a teacher says who is not learned here.

    Parameters
    ----------
    part : TeacherPart
    labeled : tuple of ImageSet
        Training images, and others without a class.
    view : callable
        Gives both as a teacher of a shape and a preparation takes them.
    names : sequence
        The classes, in the order of their numbers.
    run : TaughtRun
    """
    training, unlabeled = labeled
    teacher: PictureTeacher
    if part.source == PRETRAINED:
        shown, others = view((PRETRAINED_SIDE, PRETRAINED_SIDE, 3), Preprocessing())
        teacher, said = learn_pretrained(replace(training, images=np.asarray(shown)), run)
        names = training.classes
    else:
        teacher = read_teacher(part.source)
        shown, others = view(teacher.image_shape, teacher.preprocessing)
        said = probabilities_of(teacher, shown, names, run.n_jobs)
    training = replace(training, taught=np.asarray(said, np.float32))
    if unlabeled is None:
        return training, None
    more = probabilities_of(teacher, others, names, run.n_jobs)
    return training, replace(unlabeled, taught=more, labels=np.argmax(more, axis=1))


# ---- frozen columns of a pretrained network


def learn_pretrained(training: ImageSet, run: TaughtRun) -> tuple[CompactClassifier, np.ndarray]:
    """Return a classifier on frozen activations, and its probabilities of its own pictures.

    What a classifier says of pictures that it learned from is surer than it should be: each
    picture's probabilities are those of one that learned from the other folds.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    from visionshare.generators.pretrained import PretrainedNetwork
    from visionshare.learners.class_weights import by_number

    weights_of_classes = by_number(run.class_weight, training.classes)
    images, labels = training.images, training.labels
    family = PretrainedNetwork(size=PRETRAINED_SIDE).fit(images)
    columns = family.transform(images, None, run.n_jobs)
    mean, scale = columns.mean(axis=0), np.maximum(columns.std(axis=0), 1e-6)
    standardized = (columns - mean) / scale

    def learned(rows: np.ndarray) -> LogisticRegression:
        model = LogisticRegression(C=_STRENGTH, max_iter=500, class_weight=weights_of_classes)
        return model.fit(standardized[rows], labels[rows])

    # 1) scores of each picture by those who did not see it
    k = len(training.classes)
    scores = np.zeros((len(labels), k), np.float32)
    fewest = int(np.bincount(labels, minlength=k).min())
    n_folds = min(_FOLDS, fewest)
    if n_folds < 2:
        accepted = "two pictures of each class or more"
        raise InputError("teacher", f"{PRETRAINED!r} with a class of {fewest}", accepted)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=run.seed)
    for rows, others in folds.split(standardized, labels):
        scores[others] = _all_scores(learned(rows), standardized[others])
    temperature = fit_temperature(scores, labels, np.ones(len(labels)))
    # 2) one of all pictures
    model = learned(np.arange(len(labels)))
    weights = model.coef_
    intercept = model.intercept_
    if len(weights) == 1:
        weights = np.concatenate([-weights, weights]) / 2
        intercept = np.concatenate([-intercept, intercept]) / 2
    weights = weights / scale
    classifier = CompactClassifier(
        family, weights, intercept - weights @ mean, np.asarray(training.classes)
    )
    return replace(classifier, temperature=temperature), softmax(scores, temperature)


def _all_scores(model: Any, columns: np.ndarray) -> np.ndarray:
    """Return a score of each class, also where there are two."""
    scores = model.decision_function(columns)
    return np.stack([-scores, scores], axis=1) / 2 if scores.ndim == 1 else scores
