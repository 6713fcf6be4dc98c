"""The loop of a design: structures are trained and compared, and the best one is written."""

from __future__ import annotations

import logging
import math
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.errors import (
    ClassifierFileError,
    DataError,
    InputError,
    MemoryLimitError,
    RecipeError,
)
from visionshare.files.durable import remove_folder, write_text
from visionshare.files.fingerprints import array_fingerprint, spec_fingerprint
from visionshare.machine.memory import memory_limit
from visionshare.machine.progress import shown, stage
from visionshare.recipes.design.cost import Budget
from visionshare.recipes.design.halving import Halving, Next, rung_epochs
from visionshare.recipes.design.proposals import Proposals, draw_structure
from visionshare.recipes.design.settings import Design
from visionshare.recipes.design.trials import RECIPE, WORK, Table, Trial, best_trial, design_folder
from visionshare.recipes.design.writing import check_base, recipe_of, toml_text, trial_recipe
from visionshare.recipes.run import Clock, Run
from visionshare.recipes.schema import Recipe, as_settings
from visionshare.recipes.stages.images import RunImages, prepare_images
from visionshare.recipes.stages.members import choose_features
from visionshare.recipes.stages.tuning import fine_tuned
from visionshare.recipes.training import check_run

__all__ = ["DesignResult", "design_recipe"]

_logger = logging.getLogger(__name__)

# First trials that may all fail before the reason is taken to be the recipe's.
_FAILURES = 5


@dataclass(frozen=True)
class DesignResult:
    """What a design found.

    Attributes
    ----------
    out : pathlib.Path
        Folder with ``recipe.toml`` and ``design.json``.
    recipe : Recipe
        That of the best trial.
    best : Trial
    trials : tuple of Trial
        All of them, in the order in which they were trained.
    """

    out: Path
    recipe: Recipe
    best: Trial
    trials: tuple[Trial, ...]


def design_recipe(
    recipe: Recipe,
    out: str | os.PathLike[str],
    budget: Budget | None = None,
    *,
    seconds: float | None = None,
    n_structures: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: bool = False,
) -> DesignResult:
    """Find a structure within a budget of computation, and write the recipe that trains it.

    Structures are drawn at random and trained on a part of the training images for few epochs. The
    best are trained again with more, from the features that were chosen, until the time is spent.
    All are compared on the same held-out training images; the test images are not read. The seed
    of the recipe fixes which structures are proposed; time decides how many of them are trained.

    The folder has ``design.json``, the table of all trials, and ``recipe.toml``, that of the best
    so far: both are replaced after each trial. A call with the same folder resumes, and a stop
    loses only the trial that was running.

    Parameters
    ----------
    recipe : Recipe
        Of data, preparation, learner and fine-tuning; its features, the number of its rounds and
        its head are replaced. Its section [design] says what may vary.
    out : path-like
        Folder: new, empty, or of the same design.
    budget : Budget, optional
        Of a classifier.
    seconds : float, optional
        Of all trials, those of earlier calls included. A trial that would probably take longer is
        not begun.
    n_structures : int, optional
        Structures at most; so many are tried where no time is given.
    data_dir : path-like, optional
        Where data sets are searched first.
    jobs : int, default 1
        Threads.
    progress : bool, default False
        Show how far each stage is, on standard error.

    Raises
    ------
    RecipeError, DataError, InputError, StoreError
        If something does not fit, before work starts.

    References
    ----------
    K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and hyperparameter
    optimization", AISTATS 2016.

    Examples
    --------
    >>> import tempfile
    >>> from visionshare.recipes import load_recipe
    >>> tiny = ["data.limit=200", "fine_tuning.epochs=2", "design.n_layers=[0]"]
    >>> recipe = load_recipe("digits", tiny)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = design_recipe(recipe, folder, Budget(macs=20_000), n_structures=2)
    >>> found.best.cost.macs <= 20_000, found.recipe.name
    (True, 'digits-designed')
    """
    _check_ends(seconds, n_structures)
    check_base(recipe)
    design = Design() if recipe.design is None else recipe.design.build()
    run = _base_run(recipe, design, Path(out), data_dir, jobs)
    check_run(run)
    toml_text(run.recipe)
    begun = time.perf_counter()
    limit = memory_limit(run.memory, "store.memory")
    with shown(progress), limit, design_folder(out) as folder:
        images = prepare_images(run)
        loop = _Loop(recipe, design, budget or Budget(), run, images, folder)
        tuning = run.recipe.fine_tuning
        least = 1 if tuning.max_products is None else 2
        epochs = rung_epochs(tuning.epochs, design.n_rungs, design.reduction, least)
        rule = Halving(epochs, design.reduction, seconds, n_structures)
        return loop.run(rule, begun)


def _check_ends(seconds: float | None, n_structures: int | None) -> None:
    if seconds is None and n_structures is None:
        raise InputError("seconds", None, "a time, or n_structures, or both")
    if seconds is not None and not 0 < seconds < math.inf:
        raise InputError("seconds", seconds, "a finite number above 0")
    if n_structures is not None and n_structures < 1:
        raise InputError("n_structures", n_structures, "a whole number of at least 1")


def _base_run(
    recipe: Recipe, design: Design, out: Path, data_dir: str | os.PathLike[str] | None, jobs: int
) -> Run:
    """Return a run whose images are those of all trials, of any structure."""
    some = recipe_of(recipe, draw_structure(design, np.random.default_rng(0)), design)
    folder = None if data_dir is None else Path(data_dir)
    return Run(trial_recipe(some, design, some.fine_tuning.epochs), out / WORK, folder, jobs)


class _Loop:
    """The trials of a design and all that they share."""

    def __init__(
        self,
        recipe: Recipe,
        design: Design,
        budget: Budget,
        run: Run,
        images: RunImages,
        folder: Path,
    ) -> None:
        self._recipe, self._design, self._run, self._images = recipe, design, run, images
        training, held_out = images.training, images.test
        shape = training.images.shape[1:]
        if len(shape) < 2:
            raise DataError(f"{recipe.data.source}: vectors; structures are of images")
        raster = (shape[0], shape[1], shape[2] if len(shape) == 3 else 1)
        tuning = run.recipe.fine_tuning
        self._proposals = Proposals(
            design, budget, raster, len(training.classes), tuning.max_products, recipe.seed
        )
        self._proposals.check()
        # More memory and another place of columns change nothing.
        settings = {**as_settings(recipe), "store": {"dtype": recipe.store.dtype}}
        arrays = (training.images, training.labels, held_out.images, held_out.labels)
        identity = {
            "recipe": settings,
            "design": asdict(design),
            "budget": asdict(budget),
            "images": array_fingerprint(*arrays),
        }
        about = {
            "pipeline": recipe.name,
            "recipe": as_settings(recipe),
            "design": asdict(design),
            "budget": asdict(budget),
            "image_shape": list(raster),
            "training_images": len(training),
            "held_out_images": len(held_out),
        }
        self._table = Table(folder, spec_fingerprint(identity, {}), about)
        self._table.read()

    def run(self, rule: Halving, begun: float) -> DesignResult:
        """Train what the rule says until it says no more."""
        table = self._table
        before = sum(trial.seconds for trial in table.trials)
        table.write()
        with stage("trials", begun=len(table.trials)) as advance:
            while True:
                elapsed = before + time.perf_counter() - begun
                number = sum(trial.rung == 0 for trial in table.trials)
                todo = rule.next(table.trials, elapsed, self._proposals.has(number))
                if todo is None:
                    break
                table.add(self._trial(todo, rule.epochs[todo.rung]))
                self._write_recipe()
                best = best_trial(table.trials)
                if best is None:
                    self._check_failures()
                advance(1)
        return self._result()

    def _trial(self, todo: Next, epochs: int) -> Trial:
        """Train a structure and compare it with the labels of the held-out images."""
        begun = time.perf_counter()
        drawn = self._proposals[todo.number]
        recipe = recipe_of(self._recipe, drawn.structure, self._design)
        work = self._run.work / "trial"
        remove_folder(work)
        recipe = trial_recipe(recipe, self._design, epochs)
        run = replace(self._run, recipe=recipe, work=work, clock=Clock())
        error, problem = None, None
        try:
            chosen = self._chosen(run, todo.number)
            with run.clock("fine-tuning"):
                classifier = fine_tuned(run, chosen, self._images)
            error = self._error(classifier)
        except (DataError, InputError, MemoryLimitError, RecipeError) as failure:
            problem = str(failure)
            _logger.warning("structure %d: %s", todo.number, problem)
        remove_folder(work)
        seconds = time.perf_counter() - begun
        per_epoch = run.clock.seconds.get("fine-tuning", 0.0) / epochs
        trial = Trial(
            todo.number, todo.rung, epochs, drawn.structure, drawn.cost, error,
            round(seconds, 3), round(per_epoch, 4), problem,
        )  # fmt: skip
        _logger.info("structure %d, %s: %d epochs, error %s", *_figures(trial))
        return trial

    def _chosen(self, run: Run, number: int) -> CompactClassifier:
        """Return the classifier of the chosen features; later rungs find it in a file."""
        file = self._run.work / f"chosen-{number:05d}.safetensors"
        try:
            return CompactClassifier.load(file)
        except ClassifierFileError:
            chosen = choose_features(run, self._images)
            chosen.save(file)
            return chosen

    def _error(self, classifier: CompactClassifier) -> float:
        held_out = self._images.test
        truth = np.asarray(held_out.classes)[held_out.labels]
        return float(np.mean(classifier.predict(held_out.images, self._run.jobs) != truth))

    def _check_failures(self) -> None:
        """Stop where nothing has been trained to its end."""
        trials = self._table.trials
        if len(trials) >= _FAILURES:
            raise DataError(f"none of {len(trials)} structures could be trained: {_last(trials)}")

    def _best(self) -> tuple[Trial, Recipe] | None:
        best = best_trial(self._table.trials)
        if best is None:
            return None
        return best, recipe_of(self._recipe, best.structure, self._design)

    def _write_recipe(self) -> None:
        found = self._best()
        if found is None:
            return
        best, recipe = found
        cost, images = best.cost, self._images
        remarks = [
            f"Found by `visionshare design` from {self._recipe.name}: {cost.macs:,} "
            f"multiply-accumulates, {cost.parameters:,} parameters.",
            f"{100 * (best.error or 0):.2f} % error on {len(images.test):,} held-out training "
            f"images, after {best.epochs} epochs on {images.n_originals:,} others.",
        ]
        write_text(self._table.folder / RECIPE, toml_text(recipe, remarks))

    def _result(self) -> DesignResult:
        found = self._best()
        trials = self._table.trials
        if found is None:
            raise DataError(f"no structure could be trained: {_last(trials)}")
        self._write_recipe()
        return DesignResult(self._table.folder, found[1], found[0], tuple(trials))


def _figures(trial: Trial) -> tuple[int, str, int, str]:
    error = "none" if trial.error is None else f"{100 * trial.error:.2f} %"
    return trial.number, str(trial.structure), trial.epochs, error


def _last(trials: list[Trial]) -> str:
    return next((t.problem for t in reversed(trials) if t.problem is not None), "no trial")
