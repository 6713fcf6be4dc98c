"""Training: from a recipe to a folder with classifier, figures, path and report."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.datasets import ImageSet
from visionshare.datasets.intake import as_rasters
from visionshare.errors import InputError, RecipeError
from visionshare.files.uploads import Destination
from visionshare.machine.memory import memory_limit
from visionshare.machine.progress import shown, stage
from visionshare.recipes.folder import LOCK, MANIFEST, WORK, run_folder
from visionshare.recipes.learning_curve import Trainer, measure_learning_curve
from visionshare.recipes.pools import read_pool
from visionshare.recipes.run import Run, claim_work_folder
from visionshare.recipes.schema import FeaturePart, Recipe
from visionshare.recipes.sources import learned_sources, read_sources
from visionshare.recipes.stages.columns import check_columns, check_partitions
from visionshare.recipes.stages.evaluation import evaluate, with_test_errors
from visionshare.recipes.stages.exits import with_exits
from visionshare.recipes.stages.images import RunImages, deformed_copies, load_split, prepare_images
from visionshare.recipes.stages.learning import make_learner
from visionshare.recipes.stages.members import learn_members, learn_teacher, teacher_recipe
from visionshare.recipes.stages.results import write_learning_curve, write_results
from visionshare.recipes.stages.stored import check_stored, names_storage
from visionshare.recipes.stages.tuning import check_tuning

__all__ = ["TrainResult", "check_run", "images_in_memory", "train", "train_images"]


@dataclass(frozen=True)
class TrainResult:
    """What a run left: its folder or URL, the classifier and the figures of ``metrics.json``."""

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
    learning_curve: bool = False,
    client: Any = None,
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
    learning_curve : bool, default False
        Also train on an eighth, a quarter and half of the images, and report the test errors. What
        else is written is there before that begins.
    client : distributed.Client, optional
        Of a cluster whose workers evaluate the columns and learn; the images are read, and all
        else is done, in this process. The classifier depends on ``store.partitions``, and not on
        the workers.

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
    run = Run(recipe, place.folder / WORK, folder, jobs, client=client)
    sources = check_run(run)
    if learning_curve and names_storage(recipe.data.source):
        raise InputError("learning_curve", True, "False for pictures that stay in storage")
    with (
        shown(progress),
        memory_limit(run.memory, "store.memory"),
        run_folder(place.folder, recipe) as results,
    ):
        place.claim()
        result = _trained(run, results, sources, resume, learning_curve)
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
        run = Run(recipe, Path(folder) / WORK, None, jobs)
        sources = check_run(run)
        images = images_in_memory(run, training)
        if recipe.sources is not None:
            sources += learned_sources(recipe.sources, training, jobs, recipe.seed)
        teacher = learn_teacher(run, images, sources)
        classifier = learn_members(run, images, sources, teacher)
        return classifier if recipe.early_exit is None else with_exits(run, classifier, images)


def images_in_memory(run: Run, training: ImageSet, test: ImageSet | None = None) -> RunImages:
    """Return images in memory as those of a run, with the copies that the recipe asks for."""
    n, recipe = len(training), run.recipe
    test = training.subset(slice(0, 0)) if test is None else test
    copies = 0 if recipe.deformations is None else recipe.deformations.copies
    if copies:
        made = deformed_copies(training.images, recipe, 0, copies, run.jobs)
        images = np.concatenate([training.images, made])
        labels = np.tile(training.labels, copies + 1)
        training = ImageSet(images, labels, training.classes, training.name)
    return RunImages(training, test, n)


def _trained(
    run: Run, out: Path, sources: list[Any], resume: bool, learning_curve: bool
) -> TrainResult:
    """Run the stages; the folder is this run's own."""
    recipe, jobs = run.recipe, run.jobs
    with run.clock("data"):
        images = prepare_images(run)
    if recipe.sources is not None:
        with run.clock("sources"):
            others = load_split(recipe, run.data_dir, jobs).training
            sources += learned_sources(recipe.sources, others, jobs, recipe.seed)
    claim_work_folder(run, images.pictures, resume)
    teacher = learn_teacher(run, images, sources)
    classifier = learn_members(run, images, sources, teacher)
    if recipe.temperature is not None:
        classifier = replace(classifier, temperature=recipe.temperature)
    if recipe.early_exit is not None:
        with run.clock("early exit"):
            classifier = with_exits(run, classifier, images)
    with run.clock("evaluation"):
        if len(images.test):
            classifier = with_test_errors(classifier, images.test, jobs)
        evaluation = evaluate(classifier, images.test, jobs)
    # From here on it takes pictures: all stages before had images that are prepared.
    classifier = replace(classifier, values=images.values or classifier.values)
    metrics = write_results(run, out, classifier, images, evaluation)
    if images.stored is not None:
        images.stored.save(out / MANIFEST)
    with stage("compiling"):
        # A single image has kernels of its own, and so have the read-only arrays of a file:
        # compiled now, the first prediction answers at once.
        written = CompactClassifier.load(out / "classifier.safetensors")
        written.decision_function(as_rasters(images.training.images[:1]))
    if learning_curve:
        with run.clock("learning curve"):
            points = measure_learning_curve(run, images, evaluation, _part_trainer(run))
        metrics = write_learning_curve(run, out, classifier, images, metrics, points)
    return TrainResult(out, classifier, metrics)


def _part_trainer(run: Run) -> Trainer:
    """Return what trains another recipe on the data of a run."""
    return lambda recipe, out: train(recipe, out, run.data_dir, run.jobs).metrics


def check_run(run: Run) -> list[Any]:
    """Check before any work all that needs no images; return the sources that are files."""
    recipe = run.recipe
    sources = []
    if recipe.search is not None:
        raise RecipeError("search: `visionshare train` searches; it writes a recipe without it")
    if names_storage(recipe.data.source):
        check_stored(recipe)
    if recipe.sources is not None:
        read_pool(FeaturePart(pool=recipe.sources.pool), recipe.seed)
        sources = read_sources(recipe.sources.files)
    teaching = teacher_recipe(recipe)
    for one in (recipe,) if teaching is None else (recipe, teaching):
        family = read_pool(one.features, one.seed)
        family.check_parameters()
        learner = make_learner(Run(one, run.work, jobs=run.jobs))
        learner.check_parameters()
        check_columns(one, family)
        if run.in_partitions:
            check_partitions(one, learner)
        check_tuning(one, family)
    return sources
