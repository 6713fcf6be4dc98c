"""Training: from a recipe to a folder with classifier, figures, path and report."""

from __future__ import annotations

import csv
import io
import json
import logging
import math
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier, EarlyExit, averaged, learn_exit_rule
from visionshare.datasets import Cut, Fonts, ImageSet, Preprocessing, load_images
from visionshare.datasets.sampling import sample_per_class, stratified_mask
from visionshare.durable import write_text
from visionshare.errors import RecipeError
from visionshare.fingerprints import array_fingerprint
from visionshare.generators.sources.scores import LinearSource
from visionshare.recipes.columns import check_columns, make_columns
from visionshare.recipes.fine_tuning import check_tuning, deformed_copies, fine_tuned
from visionshare.recipes.pools import read_pool
from visionshare.recipes.schema import (
    EarlyExitPart,
    FeaturePart,
    FontsPart,
    Recipe,
    as_settings,
)
from visionshare.recipes.sources import learn_sources, read_sources, sources_family
from visionshare.recipes.teaching import teacher_recipe
from visionshare.resources import parse_size, peak_memory
from visionshare.scores import predict_labels

__all__ = ["TrainResult", "train"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainResult:
    """What a run left: its folder, the classifier and the figures of ``metrics.json``."""

    out: Path
    classifier: CompactClassifier
    metrics: dict[str, Any]


class _Stages:
    """Seconds of each stage of a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        seconds = self.seconds.get(name, 0.0) + time.perf_counter() - begun
        self.seconds[name] = round(seconds, 3)
        _logger.info("%s: %.1f s", name, self.seconds[name])


def train(
    recipe: Recipe,
    out: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    resume: bool = False,
    progress: bool = False,
) -> TrainResult:
    """Train a classifier and write it with its figures and its report.

    Writes ``classifier.safetensors``, ``metrics.json``, ``path.csv`` and ``report.html``, each
    whole or not at all. What a resumed run needs lies in ``work/`` until the run ends.

    Parameters
    ----------
    recipe : Recipe
    out : path-like
        Folder of the results.
    data_dir : path-like, optional
        Where data sets are searched first.
    jobs : int, default 1
        Threads; the classifier does not depend on it.
    resume : bool, default False
        Go on with a run of the same recipe that was stopped.
    progress : bool, default False
        Show progress bars.

    Raises
    ------
    RecipeError, DataError, InputError, StoreError
        If something does not fit, before work starts.
    """
    out = Path(out)
    stages = _Stages()
    teaching = teacher_recipe(recipe)
    sources = _sources_at_hand(recipe)
    _check(recipe, out, jobs, progress)
    if teaching is not None:
        _check(teaching, out, jobs, progress)
    steps = _preprocessing(recipe)
    with stages("data"):
        training, test = _images(recipe, data_dir, jobs)
    shape = training.images.shape[1:]
    if len(shape) > 1:
        steps.check_size((shape[0], shape[1]))
    if recipe.sources is not None:
        with stages("sources"):
            sources += _learned_sources(recipe, data_dir, jobs)
    _claim(out / "work", recipe, training, resume)
    shared = _Shared(training, sources, jobs, progress, stages)
    if teaching is not None:
        with stages("teacher"):
            shared = replace(shared, teacher=_taught(teaching, shared, out / "work"))
    classifier = _members(recipe, shared, out / "work")
    if recipe.early_exit is not None:
        with stages("early exit"):
            judges = _judges(recipe, training)[: _originals(recipe, training)]
            held = training.subset(np.flatnonzero(judges))
            classifier = _with_exits(classifier, held, recipe.early_exit, jobs)
    with stages("evaluation"):
        classifier = _with_test_errors(classifier, test, jobs)
        scores = classifier.decision_function(test.images, jobs)
    return _write(out, recipe, classifier, training, test, scores, stages)


@dataclass(frozen=True)
class _Shared:
    """What all classifiers that a run learns have in common."""

    training: ImageSet
    sources: list[LinearSource]
    jobs: int
    progress: bool
    stages: _Stages
    teacher: CompactClassifier | None = None


def _check(recipe: Recipe, out: Path, jobs: int, progress: bool) -> None:
    """Check before any work all that needs no images."""
    family = read_pool(recipe.features, recipe.seed)
    family.check_parameters()
    _learner(recipe, out / "work", jobs, progress).check_parameters()
    check_columns(recipe, family)
    check_tuning(recipe, family)
    parse_size(recipe.store.memory, "store.memory")


def _taught(recipe: Recipe, shared: _Shared, work: Path) -> CompactClassifier:
    """Return what will teach; a resumed run finds it in the work folder."""
    file = work / "teacher.safetensors"
    if file.is_file():
        return CompactClassifier.load(file)
    teacher = _members(recipe, replace(shared, stages=_Stages()), work / "teacher")
    teacher.save(file)
    shutil.rmtree(work / "teacher")
    return teacher


def _members(recipe: Recipe, shared: _Shared, work: Path) -> CompactClassifier:
    """Return the mean of the recipe's members."""
    members = []
    for number in range(recipe.members):
        own = recipe.model_copy(update={"seed": recipe.seed * recipe.members + number})
        place = work / (f"member-{number + 1}" if recipe.members > 1 else "")
        members.append(_learned(own, shared, place))
    return averaged(members)


def _learned(recipe: Recipe, shared: _Shared, work: Path) -> CompactClassifier:
    """Return a classifier that is learned, and tuned where the recipe says so."""
    training, stages = shared.training, shared.stages
    jobs, progress = shared.jobs, shared.progress
    family = read_pool(recipe.features, recipe.seed)
    if shared.sources:
        family = _with_sources(family, shared.sources, training.images)
    learner = _learner(recipe, work, jobs, progress)
    originals = _originals(recipe, training)
    with stages("features"):
        family.fit(training.images[:originals])
    searched = _searched(recipe, training)
    with stages("columns"):
        columns, features = make_columns(recipe, family, searched.images, work, jobs, progress)
    with stages("learning"):
        others = {} if recipe.early_exit is None else {"validation": _judges(recipe, training)}
        learner.fit(columns, searched.labels, **others)
    del columns
    metadata = {
        "pipeline": recipe.name,
        "recipe": as_settings(recipe),
        "training_data": array_fingerprint(training.images, training.labels),
    }
    classes = [training.classes[c] for c in learner.classes_]
    classifier = learner.to_classifier(features, classes, metadata)
    classifier = replace(classifier, preprocessing=_preprocessing(recipe))
    if recipe.fine_tuning is None:
        return classifier
    with stages("fine-tuning"):
        options = (shared.teacher, work, jobs, progress)
        return fine_tuned(classifier, training, originals, recipe, *options)


def _loaded(recipe: Recipe, split: str, data_dir: Any) -> ImageSet:
    part = recipe.data
    size = None if part.height is None or part.width is None else (part.height, part.width)
    cut = None if part.cut is None else Cut(**part.cut.model_dump())
    steps = _preprocessing(recipe)
    fonts = None if part.fonts is None else _fonts(part.fonts)
    return load_images(part.source, split, data_dir, size, part.mode, steps, cut, fonts)


def _preprocessing(recipe: Recipe) -> Preprocessing:
    """Return how pictures are prepared, in training and ever after."""
    if recipe.preprocessing is None:
        return Preprocessing(fit=recipe.data.fit)
    return Preprocessing(**recipe.preprocessing.model_dump())


def _fonts(part: FontsPart) -> Fonts:
    values: dict[str, Any] = part.model_dump()
    for name in ("folders", "tests", "left_out", "points"):
        values[name] = tuple(values[name])
    return Fonts(**values)


def _sources_at_hand(recipe: Recipe) -> list[LinearSource]:
    """Return the sources that are files, before any work."""
    if recipe.sources is None:
        return []
    read_pool(FeaturePart(pool=recipe.sources.pool), recipe.seed)
    return read_sources(recipe.sources.files)


def _learned_sources(recipe: Recipe, data_dir: Any, jobs: int) -> list[LinearSource]:
    """Return the sources that are learned from other classes of the recipe's data."""
    part = recipe.sources
    if part is None or not part.classes:
        return []
    held = _loaded(recipe, "train", data_dir).of_classes(part.classes)
    pool = read_pool(FeaturePart(pool=part.pool), recipe.seed)
    return learn_sources(held, pool, part.rounds, part.alpha, jobs, recipe.seed)


def _with_sources(family: Any, sources: list[LinearSource], images: np.ndarray) -> Any:
    from visionshare.generators.union import UnionOfFamilies

    return UnionOfFamilies((family, sources_family(sources, images)))


def _images(recipe: Recipe, data_dir: Any, jobs: int) -> tuple[ImageSet, ImageSet]:
    part = recipe.data
    training, test = (_loaded(recipe, split, data_dir) for split in ("train", "test"))
    if part.held_out:
        judges = stratified_mask(training.labels, part.held_out, 0)
        test = training.subset(np.flatnonzero(judges))
        training = training.subset(np.flatnonzero(~judges))
    if part.classes is not None:
        training, test = training.of_classes(part.classes), test.of_classes(part.classes)
    if part.per_class is not None:
        rng = np.random.default_rng(recipe.seed)
        training = training.subset(sample_per_class(training.labels, part.per_class, rng))
    if part.limit is not None and part.limit < len(training):
        rng = np.random.default_rng(recipe.seed)
        training = training.subset(np.sort(rng.permutation(len(training))[: part.limit]))
    if test.classes != training.classes or test.images.shape[1:] != training.images.shape[1:]:
        raise RecipeError(f"{part.source}: training and test images differ in classes or shape")
    return _with_copies(training, recipe, jobs), test


def _with_copies(training: ImageSet, recipe: Recipe, jobs: int) -> ImageSet:
    if recipe.deformations is None or recipe.deformations.copies == 0:
        return training
    copies = recipe.deformations.copies
    images = np.concatenate(
        [training.images, deformed_copies(training.images, recipe, 0, copies, jobs)]
    )
    labels = np.tile(training.labels, copies + 1)
    return ImageSet(images, labels, training.classes, training.name)


def _searched(recipe: Recipe, training: ImageSet) -> ImageSet:
    """Return the images that the search looks at."""
    n = None if recipe.fine_tuning is None else recipe.fine_tuning.search_images
    if n is None or n >= len(training):
        return training
    chosen = stratified_mask(training.labels, n / len(training), recipe.seed)
    return training.subset(np.flatnonzero(chosen))


def _originals(recipe: Recipe, training: ImageSet) -> int:
    copies = 0 if recipe.deformations is None else recipe.deformations.copies
    return len(training) // (copies + 1)


def _judges(recipe: Recipe, training: ImageSet) -> np.ndarray:
    """Return which images judge where others may stop: some of each class, with their copies."""
    n = _originals(recipe, training)
    held = np.zeros(n, bool)
    if recipe.early_exit is not None:
        held = stratified_mask(training.labels[:n], recipe.early_exit.fraction, recipe.seed)
    return np.tile(held, len(training) // n)


def _with_exits(
    classifier: CompactClassifier, held: ImageSet, part: EarlyExitPart, jobs: int
) -> CompactClassifier:
    """Return the classifier with the rule that the images which judge give."""
    truth = np.asarray(held.classes)[held.labels]
    rule = learn_exit_rule(
        classifier,
        held.images,
        truth,
        tolerance=part.tolerance,
        stages=part.stages,
        n_jobs=jobs,
    )
    return replace(classifier, exit_rule=rule)


def _claim(work: Path, recipe: Recipe, training: ImageSet, resume: bool) -> None:
    """Make the work folder this run's own: begin anew, or go on with the same recipe."""
    settings = as_settings(recipe)
    # More rounds, another memory bound or place go on from the same columns and rounds.
    identity = json.dumps(
        {
            **settings,
            "store": {"dtype": settings["store"]["dtype"]},
            "learner": {k: v for k, v in settings["learner"].items() if k != "rounds"},
            "images": array_fingerprint(training.images, training.labels),
        },
        sort_keys=True,
    )
    file = work / "recipe.json"
    if not resume:
        shutil.rmtree(work, ignore_errors=True)
    elif file.exists() and file.read_text("utf-8") != identity:
        raise RecipeError(f"{work}: holds another run; leave --resume out to begin anew")
    write_text(file, identity)


def _learner(recipe: Recipe, work: Path, jobs: int, progress: bool) -> Any:
    from visionshare.learners import GreedyTL, GroupFeatureClassifier, ShareBoost

    settings = recipe.learner.model_dump(exclude={"kind"})
    if recipe.learner.kind == "greedytl":
        return GreedyTL(**settings, n_jobs=jobs, random_state=recipe.seed)
    others: dict[str, Any] = {
        "checkpoint": work / "rounds",
        "n_jobs": jobs,
        "random_state": recipe.seed,
        "progress": progress,
    }
    if recipe.learner.kind == "shareboost":
        return ShareBoost(**settings, **others)
    for name in ("alpha", "shared_alpha"):
        if settings[name] == math.inf:
            settings[name] = None
    return GroupFeatureClassifier(**settings, **others)


def _with_test_errors(
    classifier: CompactClassifier, test: ImageSet, jobs: int
) -> CompactClassifier:
    """Return the classifier with the test error of every round in its path."""
    values = classifier.family.transform(test.images, None, jobs)
    truth = np.asarray(test.classes)[test.labels]
    path = []
    for step in classifier.path:
        scores = values[:, : step.n_features] @ step.weights.T + step.intercept
        predicted = predict_labels(classifier.classes_, scores)
        path.append(replace(step, test_error=float(np.mean(predicted != truth))))
    return replace(classifier, path=tuple(path))


def _write(
    out: Path,
    recipe: Recipe,
    classifier: CompactClassifier,
    training: ImageSet,
    test: ImageSet,
    scores: np.ndarray,
    stages: _Stages,
) -> TrainResult:
    from visionshare.reports import write_report

    predicted = predict_labels(classifier.classes_, scores)
    errors = int(np.sum(predicted != np.asarray(test.classes)[test.labels]))
    metrics: dict[str, Any] = {
        "pipeline": recipe.name,
        "train_images": len(training),
        "test_images": len(test),
        "test_errors": errors,
        "test_error_rate": errors / len(test),
        "rounds": len(classifier.path),
        "features": classifier.n_features,
        "macs": classifier.macs,
        "nbytes": classifier.nbytes,
        "seconds": dict(stages.seconds),
        "peak_memory": peak_memory(),
    }
    if classifier.exit_rule is not None:
        truth = np.asarray(test.classes)[test.labels]
        metrics["early_exit"] = asdict(EarlyExit(classifier).measure(test.images, truth))
    classifier.save(out / "classifier.safetensors")
    write_text(out / "path.csv", _path_table(classifier))
    index = {name: i for i, name in enumerate(test.classes)}
    with stages("report"):
        write_report(
            out / "report.html",
            classifier,
            images=test.images,
            labels=test.labels,
            predictions=np.array([index[str(p)] for p in predicted]),
            classes=test.classes,
            metrics=metrics,
            settings=dict(as_settings(recipe)),
        )
    metrics["seconds"] = dict(stages.seconds)
    metrics["peak_memory"] = peak_memory()
    write_text(out / "metrics.json", json.dumps(metrics, indent=2) + "\n")
    shutil.rmtree(out / "work", ignore_errors=True)
    return TrainResult(out, classifier, metrics)


def _path_table(classifier: CompactClassifier) -> str:
    names = ["round", "feature", "n_features", "score", "loss", "train_error"]
    names += ["validation_error", "test_error", "seconds", "macs"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for step in classifier.path:
        row = [getattr(step, name) for name in names]
        row[1] = " ".join(map(str, step.feature))
        writer.writerow(["" if value is None else value for value in row])
    return text.getvalue()
