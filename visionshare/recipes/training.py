"""Training: from a recipe to a folder with classifier, figures, path and report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from visionshare.classifier import CompactClassifier
from visionshare.recipes.folder import WORK, run_folder
from visionshare.recipes.pools import read_pool
from visionshare.recipes.run import Run, claim_work_folder
from visionshare.recipes.schema import FeaturePart, Recipe
from visionshare.recipes.sources import learned_sources, read_sources
from visionshare.recipes.stages.columns import check_columns
from visionshare.recipes.stages.evaluation import evaluate, with_test_errors
from visionshare.recipes.stages.exits import with_exits
from visionshare.recipes.stages.images import load_split, prepare_images
from visionshare.recipes.stages.learning import make_learner
from visionshare.recipes.stages.members import learn_members, learn_teacher, teacher_recipe
from visionshare.recipes.stages.results import write_results
from visionshare.recipes.stages.tuning import check_tuning

__all__ = ["TrainResult", "check_run", "train"]


@dataclass(frozen=True)
class TrainResult:
    """What a run left: its folder, the classifier and the figures of ``metrics.json``."""

    out: Path
    classifier: CompactClassifier
    metrics: dict[str, Any]


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
    atomically. What a resumed run needs lies in ``work/`` until the run ends. ``run.json`` marks
    the folder as a run's: a folder that holds anything else is refused.

    Parameters
    ----------
    recipe : Recipe
    out : path-like
        Folder of the results.
    data_dir : path-like, optional
        Where data sets are searched first.
    jobs : int, default 1
        Number of workers (threads); the classifier does not depend on it.
    resume : bool, default False
        Resume a run of the same recipe that was stopped.
    progress : bool, default False
        Show progress bars.

    Raises
    ------
    RecipeError, DataError, InputError, StoreError
        If something does not fit, before work starts.

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
    run = Run(recipe, Path(out) / WORK, folder, jobs, progress)
    sources = check_run(run)
    with run_folder(out, recipe) as results:
        return _trained(run, results, sources, resume)


def _trained(run: Run, out: Path, sources: list[Any], resume: bool) -> TrainResult:
    """Run the stages; the folder is this run's own."""
    recipe, jobs = run.recipe, run.jobs
    with run.clock("data"):
        images = prepare_images(run)
    if recipe.sources is not None:
        with run.clock("sources"):
            others = load_split(recipe, "train", run.data_dir)
            sources += learned_sources(recipe.sources, others, jobs, recipe.seed)
    claim_work_folder(run, images.training, resume)
    teacher = learn_teacher(run, images, sources)
    classifier = learn_members(run, images, sources, teacher)
    if recipe.early_exit is not None:
        with run.clock("early exit"):
            classifier = with_exits(run, classifier, images)
    with run.clock("evaluation"):
        classifier = with_test_errors(classifier, images.test, jobs)
        evaluation = evaluate(classifier, images.test, jobs)
    metrics = write_results(run, out, classifier, images, evaluation)
    return TrainResult(out, classifier, metrics)


def check_run(run: Run) -> list[Any]:
    """Check before any work all that needs no images; return the sources that are files.

    Raises
    ------
    RecipeError, InputError, DataError
        If a setting is not accepted or does not fit the others, or a source cannot be read.
    """
    recipe = run.recipe
    sources = []
    if recipe.sources is not None:
        read_pool(FeaturePart(pool=recipe.sources.pool), recipe.seed)
        sources = read_sources(recipe.sources.files)
    teaching = teacher_recipe(recipe)
    for one in (recipe,) if teaching is None else (recipe, teaching):
        family = read_pool(one.features, one.seed)
        family.check_parameters()
        make_learner(Run(one, run.work, jobs=run.jobs)).check_parameters()
        check_columns(one, family)
        check_tuning(one, family)
    return sources
