"""Teachers: better classifiers, or networks of others, whose probabilities a small one learns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from visionshare.class_labels import quoted
from visionshare.classifier import CompactClassifier
from visionshare.datasets import Augmentation, ImageSet, Preprocessing, augmented_copies
from visionshare.datasets.intake import Intake, as_rasters
from visionshare.errors import InputError
from visionshare.generators.pretrained.network import kept_activations
from visionshare.recipes.onnx_teacher import OnnxTeacher
from visionshare.recipes.schema import TeacherPart

#: Larger classifiers of the same kind, learned first from the same pictures.
SELF = "self"
#: A ridge regression on the activations of EfficientNet-Lite0.
PRETRAINED = "pretrained"

#: Side at which EfficientNet-Lite0 sees the pictures.
_SIDE_SHOWN = 128


# Copies that the pretrained network is shown, at most, and at once.
_MOST_COPIES = 20_000
_BATCH = 200
_UNCHANGED = Preprocessing()
_DEFORMED = Augmentation(
    alpha=0.0,
    rotation=10.0,
    scale=0.2,
    shear=0.1,
    shift=_SIDE_SHOWN // 8,
    flip=0.5,
    border="reflect",
    brightness=0.3,
    contrast=0.3,
    saturation=0.3,
)


class TaughtRun(NamedTuple):
    """How a teacher is learned and asked."""

    class_weight: Any = None
    seed: int = 0
    n_jobs: int = 1
    #: Of the pictures that the small classifier learns from.
    preprocessing: Preprocessing = _UNCHANGED


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
    """Check, before any work, that a teacher is there."""
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
    """Return a teacher's probabilities (n, k), float32, in the order of the classes."""
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
    """Return images, and those without a class, with the probabilities of a given teacher."""
    training, unlabeled = labeled
    teacher: PictureTeacher
    with kept_activations():
        if part.source == PRETRAINED:
            shown, others = view((_SIDE_SHOWN, _SIDE_SHOWN, 3), Preprocessing())
            teacher = learn_pretrained(replace(training, images=np.asarray(shown)), run)
            names = training.classes
        else:
            teacher = read_teacher(part.source)
            shown, others = view(teacher.image_shape, teacher.preprocessing)
        training = replace(training, taught=probabilities_of(teacher, shown, names, run.n_jobs))
    learned = []
    n = n_copies(part, len(training))
    if n > 0:
        learned = list(_taught_copies(teacher, training, np.asarray(shown), n, run))
    if unlabeled is not None:
        said = probabilities_of(teacher, others, names, run.n_jobs)
        learned.append(replace(unlabeled, taught=said, labels=np.argmax(said, axis=1)))
    return training, joined(learned) if learned else None


def n_copies(part: TeacherPart, n: int) -> int:
    """Return how many copies of each of n pictures come first among those without a class."""
    return min(part.copies, _MOST_COPIES // n) if part.source == PRETRAINED else 0


def _taught_copies(
    teacher: PictureTeacher, training: ImageSet, shown: np.ndarray, n: int, run: TaughtRun
) -> Iterator[ImageSet]:
    """Yield deformed copies of the pictures that a teacher is shown, few at a time."""
    rows, columns, *channels = training.images.shape[1:]
    small = Intake((rows, columns), channels[0] if channels else 1, run.preprocessing)
    made = augmented_copies(shown, _DEFORMED, n, run.seed, _BATCH, 0, run.n_jobs)
    for _, _, copies in made:
        said = probabilities_of(teacher, as_rasters(copies), training.classes, run.n_jobs)
        labels = np.argmax(said, axis=1)
        yield ImageSet(small.apply(copies), labels, training.classes, "copies", taught=said)


def joined(parts: Sequence[ImageSet]) -> ImageSet:
    """Return the images of all parts, with what a teacher says where it says something of each."""
    taught = [part.taught for part in parts if part.taught is not None]
    weights = answers = None
    if any(part.weights is not None for part in parts):
        ones = [np.ones(len(part)) if part.weights is None else part.weights for part in parts]
        weights = np.concatenate(ones)
    shown = [part.answers for part in parts if part.answers is not None]
    if len(shown) == len(parts):
        answers = replace(shown[0], truth=np.concatenate([one.truth for one in shown]))
    return replace(
        parts[0],
        images=np.concatenate([part.images for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        names=None,
        taught=np.concatenate(taught) if len(taught) == len(parts) else None,
        answers=answers,
        weights=weights,
    )


# ---- frozen columns of a pretrained network


def learn_pretrained(training: ImageSet, run: TaughtRun) -> CompactClassifier:
    """Return a ridge regression on frozen activations, calibrated on pictures that it left out."""
    from visionshare.columns import ArrayColumns
    from visionshare.generators.pretrained import PretrainedNetwork
    from visionshare.generators.pretrained.network import proposed_side
    from visionshare.learners import DenseClassifier
    from visionshare.learners.class_weights import by_number

    side = proposed_side(len(training))
    family = PretrainedNetwork(size=side, power=0.5).fit(training.images)
    columns = ArrayColumns.from_family(family, training.images, "float32", run.n_jobs)
    weights = by_number(run.class_weight, training.classes)
    learner = DenseClassifier(class_weight=weights, n_jobs=run.n_jobs)
    learner.fit(columns, training.labels)
    return learner.to_classifier(family, dict(enumerate(training.classes)))
