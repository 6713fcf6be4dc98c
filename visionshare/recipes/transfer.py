"""Transfer: sources and a few labeled images become a classifier of the new classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.class_labels import quoted
from visionshare.classifier import CompactClassifier
from visionshare.datasets import ImageSet
from visionshare.datasets.sampling import sample_one_class, sample_per_class
from visionshare.errors import DataError, InputError
from visionshare.files.fingerprints import array_fingerprint
from visionshare.generators.pretrained import PretrainedNetwork
from visionshare.generators.pretrained.efficientnet import CLASSES
from visionshare.generators.sources.scores import LinearSource
from visionshare.learners import GreedyTL
from visionshare.recipes.pools import read_pool
from visionshare.recipes.schema import FeaturePart
from visionshare.recipes.source_classifiers import source_shape, sources_family

NO_FEATURES = "none"


@dataclass(frozen=True)
class Task:
    """What is learned, and from how much of it."""

    pool: str = "pixels"
    positive: str | None = None
    positives: int | None = None
    negatives: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Check what can be checked without images."""
        for name in ("positives", "negatives"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(name, value, "a number of images of at least 1")
        if self.negatives is not None and self.positive is None:
            accepted = "a number together with the positive class; else give positives alone"
            raise InputError("negatives", self.negatives, accepted)


@dataclass(frozen=True)
class ChosenFeature:
    """A score of a source that a class uses; weights of one run are comparable."""

    target: str
    source: str
    source_class: str
    weight: float


@dataclass(frozen=True)
class Transferred:
    """The classifier, what it uses of the sources, and how good it is on what it has not seen."""

    classifier: CompactClassifier
    chosen: tuple[ChosenFeature, ...]
    trained_on: int
    validated_on: int
    balanced_accuracy: float | None


def transfer(
    examples: ImageSet,
    sources: list[LinearSource],
    learner: GreedyTL,
    task: Task | None = None,
    n_jobs: int = 1,
) -> Transferred:
    """Learn the classes of a few images from sources and from features of the images."""
    from visionshare.columns import ArrayColumns

    task = task or Task()
    task.check()
    learner.check_parameters()
    image_shape(sources, task.pool)
    scores = sources_family(sources, examples.images) if sources else None
    labels, names, rows = _training_rows(examples, task)
    family = _family(scores, task).fit(examples.images[rows])
    columns = ArrayColumns.from_family(family, examples.images[rows], "float32", n_jobs)
    learner.fit(columns, labels[rows])
    if len(learner.support_) == 0:
        raise DataError(
            f"{examples.name}: no source and no feature tells these {len(rows)} images apart; give "
            "more images, more sources, or other features"
        )
    metadata = {
        "sources": [source.name for source in sources],
        "training_data": array_fingerprint(examples.images[rows], labels[rows]),
    }
    model = learner.to_classifier(family, dict(enumerate(names)), metadata)
    rest = np.setdiff1d(np.arange(len(examples)), rows)
    accuracy = _balanced_accuracy(model, examples.images[rest], labels[rest], names, n_jobs)
    return Transferred(model, _chosen(model, learner), len(rows), len(rest), accuracy)


def image_shape(sources: list[LinearSource], pool: str) -> tuple[int, ...]:
    """Return the shape of images that the sources take, or the network of a pool without any."""
    if sources:
        return source_shape(sources)
    network = None if pool == NO_FEATURES else read_pool(FeaturePart(pool=pool), 0)
    if not isinstance(network, PretrainedNetwork):
        accepted = "classifier files; or none, with the features of a network such as "
        raise InputError("sources", "none", f"{accepted}'efficientnet-lite0-classes'")
    return (int(network.size), int(network.size), 3)


def _training_rows(examples: ImageSet, task: Task) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return labels and names of the task's classes, and the rows that train."""
    rng = np.random.default_rng(task.seed)
    if task.positive is None:
        n = len(examples) if task.positives is None else task.positives
        if len(np.unique(examples.labels)) < 2:
            raise DataError(f"{examples.name}: one class; give two or more")
        return examples.labels, list(examples.classes), sample_per_class(examples.labels, n, rng)
    if task.positive not in examples.classes:
        known = quoted(examples.classes)
        raise DataError(f"{examples.name}: no class {task.positive!r}; it has {known}")
    labels = (examples.labels == examples.classes.index(task.positive)).astype(np.int64)
    rows = np.sort(sample_one_class(labels, 1, task.positives, task.negatives, rng))
    return labels, [f"not {task.positive}", task.positive], rows


def _family(scores: Any, task: Task) -> Any:
    from visionshare.generators.union import UnionOfFamilies

    if task.pool == NO_FEATURES:
        return scores
    features = read_pool(FeaturePart(pool=task.pool), task.seed)
    return features if scores is None else UnionOfFamilies((features, scores))


def _chosen(model: CompactClassifier, learner: GreedyTL) -> tuple[ChosenFeature, ...]:
    """Return the sources' scores of a classifier with the weights of scaled columns."""
    names = model.classes_.tolist()
    targets = names[1:] if len(learner.scaled_coef_) == 1 else names
    chosen = []
    for j in range(model.n_features):
        described = model.family.describe(j)
        if described["kind"] == "source":
            source = described["name"]
            of = str(described.get("class", described["output"]))
        elif described.get("place") == CLASSES:
            source = described["network"]
            of = f"class {described['channel']}"
        else:
            continue
        for name, weight in zip(targets, learner.scaled_coef_[:, j].tolist(), strict=True):
            if weight:
                chosen.append(ChosenFeature(str(name), source, of, weight))
    return tuple(sorted(chosen, key=lambda entry: -abs(entry.weight)))


def _balanced_accuracy(
    model: CompactClassifier, images: np.ndarray, labels: np.ndarray, names: list[str], n_jobs: int
) -> float | None:
    if len(np.unique(labels)) < len(names):
        return None
    right = model.predict(images, n_jobs) == np.asarray(names)[labels]
    return float(np.mean([right[labels == c].mean() for c in range(len(names))]))
