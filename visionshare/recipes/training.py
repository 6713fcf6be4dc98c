"""Training: from a recipe to a folder with classifier, figures, path and report."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from visionshare.answers import LabelRule
from visionshare.classifier import CompactClassifier
from visionshare.datasets import ImageSet
from visionshare.datasets.intake import as_rasters
from visionshare.errors import BudgetError, RecipeError
from visionshare.files.uploads import Destination
from visionshare.generators import FeatureFamily
from visionshare.machine.memory import memory_limit
from visionshare.machine.progress import shown, stage
from visionshare.recipes.folder import LOCK, MANIFEST, WORK, run_folder
from visionshare.recipes.pools import read_pool
from visionshare.recipes.run import Clock, TrainingRun, claim_work_folder
from visionshare.recipes.schema import Recipe
from visionshare.recipes.stages.columns import check_columns, check_partitions
from visionshare.recipes.stages.evaluation import evaluate, with_test_errors
from visionshare.recipes.stages.exits import with_exits
from visionshare.recipes.stages.images import RunImages, prepare_images, with_copies
from visionshare.recipes.stages.learning import make_learner
from visionshare.recipes.stages.learning_on import learned_on, read_starts
from visionshare.recipes.stages.members import learn_members
from visionshare.recipes.stages.refit import all_pictures, kept_features
from visionshare.recipes.stages.results import write_results
from visionshare.recipes.stages.stored import check_stored, names_storage
from visionshare.recipes.stages.teaching import larger_recipe, with_teacher
from visionshare.recipes.stages.tuning import check_tuning
from visionshare.recipes.stages.unknown_rule import with_unknown
from visionshare.recipes.teachers import SELF, check_source


@dataclass(frozen=True)
class TrainResult:
    """The result of a run: folder or URL, classifier, and the figures of ``metrics.json``.

    Examples
    --------
    >>> import tempfile
    >>> from visionshare.recipes import load_recipe, train
    >>> recipe = load_recipe("digits", ["learner.rounds=3", "data.limit=200"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = train(recipe, folder)
    >>> result.metrics["features"]
    3
    """

    out: Path | str
    classifier: CompactClassifier
    metrics: dict[str, Any]


def train(
    recipe: Recipe,
    out: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    resume: bool = False,
    progress: bool = False,
    client: Any = None,
    trials: Mapping[str, Sequence[Any]] | None = None,
) -> TrainResult:
    """Train a classifier and write it with its figures and its report.

    Writes ``classifier.safetensors`` and its model card ``classifier.md``, ``metrics.json``,
    ``path.csv`` and ``report.html``, each
    atomically. What a resumed run needs lies in ``work/`` until the run ends. ``run.json`` marks
    the folder as a run's: a folder that holds anything else is refused.

    Parameters
    ----------
    recipe : Recipe
    out : path-like
        Folder of the results; or a URL of object storage: they are then made in
        :func:`visionshare.files.uploads.local_place`, and uploaded when they are complete.
    data_dir : path-like, optional
        Where data sets are searched first.
    jobs : int, default 1
        Number of workers (threads); the classifier does not depend on it.
    resume : bool, default False
        Resume a run of the same recipe that was stopped.
    progress : bool, default False
        Show how far each stage is, on standard error: bars on a terminal, lines elsewhere.
    client : distributed.Client, optional
        Of a cluster whose workers evaluate the columns and learn; the images are read, and all
        else is done, in this process. The classifier depends on ``store.partitions``, and not on
        the workers.
    trials : mapping of sequences, optional
        Columns of a search's trials, for the report and ``metrics.json``.

    Raises
    ------
    RecipeError, DataError, InputError, StoreError, ClusterError
        If something does not fit, before work starts.
    StorageError
        If the results cannot be written.
    MemoryLimitError
        If a stage needs more memory than ``store.memory``, before it starts.

    Examples
    --------
    >>> import tempfile
    >>> from visionshare.recipes import load_recipe, train
    >>> recipe = load_recipe("digits", ["learner.rounds=3", "data.limit=200"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = train(recipe, folder)
    >>> result.classifier.n_features
    3
    """
    folder = None if data_dir is None else Path(data_dir)
    place = Destination.of(out)
    run = TrainingRun(recipe, place.folder / WORK, folder, jobs, client=client, trials=trials)
    check_run(run)
    with (
        shown(progress),
        memory_limit(run.memory, "store.memory"),
        run_folder(place.folder, recipe) as results,
    ):
        place.claim()
        result = _trained(run, results, resume)
        # What resumes the run is removed after it: a stopped upload is completed by --resume.
        place.deliver((WORK, LOCK))
    place.clear()
    return result if place.url is None else replace(result, out=place.url)


def train_images(
    recipe: Recipe, training: ImageSet, jobs: int = 1, progress: bool = False
) -> CompactClassifier:
    """Return the classifier that a recipe learns from images in memory; nothing is left on disk.

    Parameters
    ----------
    recipe : Recipe
        Its section [data] is not read.
    training : ImageSet
    jobs : int, default 1
        Number of workers (threads); the classifier does not depend on it.
    progress : bool, default False
        Show progress bars.

    Raises
    ------
    RecipeError, DataError, InputError
        If something does not fit, before work starts.

    Examples
    --------
    >>> from visionshare.datasets import load_images
    >>> from visionshare.recipes import load_recipe
    >>> recipe = load_recipe("digits", ["learner.rounds=3"])
    >>> train_images(recipe, load_images("digits").subset(slice(200))).n_features
    3
    """
    with tempfile.TemporaryDirectory(prefix="visionshare-") as folder, shown(progress):
        run = TrainingRun(recipe, Path(folder) / WORK, None, jobs)
        check_run(run)
        images = with_teacher(run, images_in_memory(run, training))
        classifier = learn_members(run, images)
        return classifier if recipe.early_exit is None else with_exits(run, classifier, images)


def images_in_memory(
    run: TrainingRun, training: ImageSet, unlabeled: ImageSet | None = None
) -> RunImages:
    """Return images in memory as a run's images, with the copies that the recipe asks for."""
    copied = with_copies(training, run.recipe, run.jobs)
    none = training.subset(slice(0, 0))
    return RunImages(copied, none, len(training), unlabeled=unlabeled)


def _trained(run: TrainingRun, out: Path, resume: bool) -> TrainResult:
    """Run the stages; the folder is this run's own."""
    recipe = run.recipe
    jobs = run.jobs
    with run.clock("data"):
        images = prepare_images(run)
    claim_work_folder(run, images.pictures, resume)
    # 1) learn, and test once
    prepared = images
    starts = read_starts(recipe)
    measured, images = _learned(run, prepared, start=starts and starts.tested)
    with run.clock("evaluation"):
        if len(images.test) and images.test.answers is None:
            measured = with_test_errors(measured, images.test, jobs)
        evaluation = evaluate(measured, images.test, jobs)
    # 2) learn again from all pictures
    again = None
    if recipe.refit and len(images.test):
        try:
            with run.clock("refit"):
                again = _refitted(run, measured, prepared, starts and starts.written)
        except BudgetError as error:
            note = f"the classifier is not trained again on all pictures: {error}"
            images = replace(images, notes=(*images.notes, note))
    # 3) From here on it takes pictures: all stages before had images that are prepared.
    classifier = measured if again is None else again
    classifier = replace(classifier, values=images.values or classifier.values)
    tested = None if again is None else measured
    metrics = write_results(run, out, classifier, images, evaluation, tested)
    if images.stored is not None:
        images.stored.save(out / MANIFEST)
    with stage("compiling"):
        # A single image has kernels of its own, and so have the read-only arrays of a file:
        # compiled now, the first prediction answers at once.
        written = CompactClassifier.load(out / "classifier.safetensors")
        written.decision_function(as_rasters(images.training.images[:1]))
    return TrainResult(out, classifier, metrics)


def _learned(
    run: TrainingRun,
    images: RunImages,
    family: FeatureFamily | None = None,
    start: CompactClassifier | None = None,
) -> tuple[CompactClassifier, RunImages]:
    """Return the classifier of a run's images, and these with what teaches."""
    recipe = run.recipe
    images = with_teacher(run, images)
    if start is None:
        classifier = learn_members(run, images, family)
    else:
        classifier = learned_on(run, start, images)
    answers = images.training.answers
    if answers is not None:
        rule = answers.rule
        if isinstance(rule, LabelRule) and recipe.thresholds is not None:
            rule = replace(rule, thresholds=tuple(recipe.thresholds))
        classifier = replace(classifier, classes=rule.classes, answer=rule)
    if recipe.temperature is not None:
        classifier = replace(classifier, temperature=recipe.temperature)
    elif answers is not None and recipe.fine_tuning is not None and recipe.quantization is None:
        # The probabilities that were learned are not those of the nearest levels.
        classifier = replace(classifier, temperature=1.0)
    if recipe.early_exit is not None:
        with run.clock("early exit"):
            classifier = with_exits(run, classifier, images)
    if recipe.unknown is not None:
        with run.clock("unknown pictures"):
            classifier = with_unknown(run, classifier, images)
    return classifier, images


def _refitted(
    run: TrainingRun,
    measured: CompactClassifier,
    images: RunImages,
    start: CompactClassifier | None,
) -> CompactClassifier:
    """Return what the recipe learns from all pictures, at the cost of what was measured."""
    again = replace(run, work=run.work / "refit", clock=Clock())
    family = kept_features(run, measured)
    classifier, _ = _learned(again, all_pictures(run, images), family, start)
    return classifier


def check_run(run: TrainingRun) -> None:
    """Check before any work all that needs no images."""
    recipe = run.recipe
    if recipe.search is not None:
        raise RecipeError("search: `visionshare train` searches; it writes a recipe without it")
    if names_storage(recipe.data.source):
        for name in ("teacher", "refit", "start"):
            if getattr(recipe, name):
                raise RecipeError(f"{name}: not with pictures in storage; copy them here")
        check_stored(recipe)
    family = read_pool(recipe.features, recipe.seed)
    family.check_parameters()
    learner = make_learner(run)
    learner.check_parameters()
    check_columns(recipe, family)
    if run.in_partitions:
        check_partitions(recipe, learner)
    check_tuning(recipe, family)
    read_starts(recipe)
    if recipe.teacher is not None:
        check_source(recipe.teacher.source)
        if recipe.teacher.source == SELF:
            larger_recipe(recipe)
        if recipe.refit and recipe.teacher.source != SELF:
            raise RecipeError(f"refit: not with the teacher {recipe.teacher.source!r}")
