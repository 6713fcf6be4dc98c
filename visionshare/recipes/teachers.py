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
from visionshare.generators.pretrained.network import kept_activations
from visionshare.recipes.onnx_teacher import OnnxTeacher
from visionshare.recipes.schema import TeacherPart

#: Larger classifiers of the same kind, learned first from the same pictures.
SELF = "self"
#: A ridge regression on the activations of EfficientNet-Lite0.
PRETRAINED = "pretrained"

#: Side at which EfficientNet-Lite0 sees the pictures.
PRETRAINED_SIDE = 128


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
    with kept_activations():
        if part.source == PRETRAINED:
            shown, others = view((PRETRAINED_SIDE, PRETRAINED_SIDE, 3), Preprocessing())
            teacher = learn_pretrained(replace(training, images=np.asarray(shown)), run)
            names = training.classes
        else:
            teacher = read_teacher(part.source)
            shown, others = view(teacher.image_shape, teacher.preprocessing)
        training = replace(training, taught=probabilities_of(teacher, shown, names, run.n_jobs))
    if unlabeled is None:
        return training, None
    more = probabilities_of(teacher, others, names, run.n_jobs)
    return training, replace(unlabeled, taught=more, labels=np.argmax(more, axis=1))


# ---- frozen columns of a pretrained network


def learn_pretrained(training: ImageSet, run: TaughtRun) -> CompactClassifier:
    """Return a ridge regression on frozen activations, calibrated on pictures that it left out."""
    from visionshare.columns import ArrayColumns
    from visionshare.generators.pretrained import PretrainedNetwork
    from visionshare.learners import DenseClassifier
    from visionshare.learners.class_weights import by_number

    family = PretrainedNetwork(size=PRETRAINED_SIDE, power=0.5).fit(training.images)
    columns = ArrayColumns.from_family(family, training.images, "float32", run.n_jobs)
    weights = by_number(run.class_weight, training.classes)
    learner = DenseClassifier(class_weight=weights, n_jobs=run.n_jobs)
    learner.fit(columns, training.labels)
    return learner.to_classifier(family, dict(enumerate(training.classes)))
