"""Fine-tuning: the parameters of chosen features and all weights move together, by gradients."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.class_labels import numbers_of
from visionshare.distributed.blocks import ColumnSettings, bounds_of
from visionshare.distributed.cluster import ClusterEngine
from visionshare.distributed.engine import Engine, LocalEngine
from visionshare.distributed.input_blocks import current_client
from visionshare.errors import InputError
from visionshare.learners.checkpoint import History
from visionshare.learners.class_weights import weights_of_classes
from visionshare.learners.examples import example_weights
from visionshare.learners.fine_tuning.parts import (
    ImagePart,
    PartSplit,
    SoftTeacher,
    Teacher,
    softened_parts,
)  # fmt: skip
from visionshare.learners.fine_tuning.settings import FineTuning
from visionshare.learners.fine_tuning.steps import Epoch, Tuner
from visionshare.machine.resources import thread_limit

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

Images = np.ndarray | Callable[[int], np.ndarray]


def fine_tune(
    classifier: CompactClassifier,
    images: Images | Sequence[Images],
    labels: np.ndarray | Sequence[np.ndarray],
    settings: FineTuning | None = None,
    *,
    teacher: Teacher | np.ndarray | None = None,
    sample_weight: np.ndarray | Sequence[np.ndarray] | None = None,
    n_jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
    client: Any = None,
    curve: list[tuple[float, float, float]] | None = None,
) -> CompactClassifier:
    """Return the classifier after gradient steps on its features' parameters and its weights.

    The greedy search takes features of a pool unchanged; here each moves to where it serves
    the others best, through the maxima, by the loss that chose it. Products of pairs of features
    may join: they cost a multiplication each.

    Parameters
    ----------
    classifier : CompactClassifier
        Of a family whose parameters can move, see :mod:`visionshare.generators.tuning`.
    images : ndarray of shape (m, *image_shape), or callable
        The training images; a callable returns an epoch's images (from 0), such as deformed copies,
        with the same labels. Or a list of such: parts, of each of which a step has its share; the
        last bits depend on the parts.
    labels : ndarray of shape (m,)
        Classes of the images; a list where those are one.
    settings : FineTuning, optional
    teacher : Teacher or ndarray of shape (m, k), optional
        A better classifier of the same classes, such as a larger one or the mean of several: its
        scores of each image join the loss. One that was trained on the very images says little
        more than their labels do; let it see other copies. Or the probabilities of each image,
        the same for all of its copies, in the order of the classifier's classes.
    sample_weight : ndarray of shape (m,), optional
        What each image counts in the loss; a list where images are one. All count 1 when omitted.
    n_jobs : int, default 1
        Threads; the classifier does not depend on it.
    checkpoint : path-like, optional
        Folder that keeps each epoch; a run that was stopped resumes from there, bit for bit.
    progress : bool, default False
        Show a progress bar.
    client : distributed.Client, optional
        Of a cluster whose workers hold the parts and compute their gradients, which are added up
        here: the classifier is that of this process with the same parts, bit for bit.
    curve : list, optional
        Receives the loss, training error and validation error of each epoch.

    Returns
    -------
    CompactClassifier
        At the cost of before and that of the products, less that of features that went. Its path
        is a single step. Its temperature is fitted to the validation images; without such to the
        last epoch's scores, each taken before its image's step: those are over-confident, less so
        where the images of each epoch are new.

    Notes
    -----
    Steps have a one-cycle rate, see ``FineTuning.optimizer``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import PatchTemplates, ShareBoost
    >>> images, y = load_digits().images, load_digits().target
    >>> images = (images * 15).astype(np.uint8)
    >>> pool = PatchTemplates(3, 30, grid=3, widths=(2.0,), n_patches=3000).fit(images[:900])
    >>> greedy = ShareBoost(rounds=10).fit(pool.transform(images[:900]), y[:900])
    >>> before = greedy.to_classifier(pool)
    >>> after = fine_tune(before, images[:900], y[:900], FineTuning(epochs=10, batch=32, rate=0.01))
    >>> errors = [np.mean(c.predict(images[900:]) != y[900:]) for c in (before, after)]
    >>> bool(errors[1] < errors[0])
    True
    """
    settings = FineTuning() if settings is None else settings
    classifier.family.check_tunable()
    sources, numbers = _checked_parts(classifier, images, labels)
    splits = [PartSplit(i, len(y), settings) for i, y in enumerate(numbers)]
    trained = np.concatenate([y[split.training] for y, split in zip(numbers, splits, strict=True)])
    if len(trained) == 0:
        accepted = "a smaller one: no image is left to train on"
        raise InputError("validation_fraction", settings.validation_fraction, accepted)
    class_weights = None
    if settings.class_weight is not None:
        names = classifier.classes_.tolist()
        class_weights = weights_of_classes(settings.class_weight, trained, names)
    sizes = [len(y) for y in numbers]
    counts = _mean_of_one(sample_weight, sizes)
    taught: list[Any] = [None] * len(sizes)
    temperature = settings.teacher_temperature
    if isinstance(teacher, np.ndarray) and settings.several:
        bounds = np.cumsum(sizes)[:-1]
        taught = np.split(np.ascontiguousarray(teacher.T, np.float32), bounds, axis=1)
    elif isinstance(teacher, np.ndarray):
        taught = softened_parts(teacher, classifier.classes_, sizes, temperature)
    elif teacher is not None:
        taught = [SoftTeacher.of(teacher, classifier.classes_, temperature)] * len(sizes)
    parts = [ImagePart(*part) for part in zip(sources, sizes, taught, strict=True)]
    with thread_limit(n_jobs), _engine(parts, client, n_jobs) as engine:
        tuner = Tuner(classifier, settings, engine, numbers, splits, class_weights, n_jobs, counts)
        history = History(Epoch, settings.epochs, checkpoint, tuner.identity, progress=progress)
        epochs = history.collect(tuner.epochs(history.records), "fine-tuning")
        if curve is not None:
            curve += [(e.loss, e.train_error, e.validation_error) for e in epochs]
        return tuner.classifier(epochs)


@contextmanager
def _engine(parts: Sequence[ImagePart], client: Any, n_jobs: int) -> Iterator[Engine]:
    """Give an engine whose partitions are parts of the images, here or on a client's workers."""
    bounds = bounds_of([part.shape[0] for part in parts])
    if client is None:
        yield LocalEngine(parts, bounds, ColumnSettings(), n_jobs)
        return
    engine = ClusterEngine(current_client(client), parts, bounds, ColumnSettings())
    try:
        yield engine
    finally:
        engine.close()


def _mean_of_one(sample_weight: Any, sizes: list[int]) -> list[np.ndarray] | None:
    """Return the weights of each part's images, whose mean over all parts is 1."""
    if sample_weight is None:
        return None
    parts = sample_weight if isinstance(sample_weight, list) else [sample_weight]
    omega = example_weights(np.concatenate(parts), np.zeros(sum(sizes)))
    return np.split(omega / omega.mean(), np.cumsum(sizes)[:-1])


def _checked_parts(
    classifier: CompactClassifier,
    images: Images | Sequence[Images],
    labels: np.ndarray | Sequence[np.ndarray],
) -> tuple[list[Images], list[np.ndarray]]:
    """Return the images of each part, and the numbers of their classes."""
    parts: list[Any] = images if isinstance(images, list) else [images]
    lists: list[Any] = list(labels) if isinstance(images, list) else [labels]
    if len(parts) != len(lists) or not parts:
        raise InputError("labels", f"{len(lists)} lists", f"{len(parts)}, one for each part")
    for names in lists:
        shape = np.shape(names)
        if len(shape) != 1 or shape[0] == 0:
            raise InputError("labels", shape, "a class for each image")
    return parts, [numbers_of(names, classifier.classes_) for names in lists]
