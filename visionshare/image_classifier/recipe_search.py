"""A search that ends in a recipe for pictures, and the file that keeps what it chose."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.answers import LabelRule
from visionshare.datasets.pictures.survey import survey_pictures
from visionshare.datasets.readers.registry import find_pictures
from visionshare.errors import DataError, InputError, RecipeError
from visionshare.files.durable import is_partial, remove_folder, write_text
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.choice import Choice, choose
from visionshare.image_classifier.following import line_of
from visionshare.image_classifier.kept_trials import KeptTrials, is_trial_file
from visionshare.image_classifier.pretrained import network_for
from visionshare.image_classifier.proposals import Data, Dense, Greedy
from visionshare.image_classifier.state import SearchSettings
from visionshare.image_classifier.transfer import Transfer
from visionshare.image_classifier.trials import ProposalLearner, table
from visionshare.machine.memory import memory_limit
from visionshare.recipes import Recipe, load_recipe, train_images
from visionshare.recipes.folder import WORK, check_run_folder, run_folder
from visionshare.recipes.own_pictures import names_pictures
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.schema import as_settings
from visionshare.recipes.stages.images import RunImages, prepare_images
from visionshare.recipes.stages.teaching import told
from visionshare.recipes.teachers import check_source
from visionshare.recipes.writing import toml_text

#: File of a run's folder with the recipe that was chosen.
CHOSEN = "recipe.toml"
_TABLE = "trials.json"
_TRIALS = "trials"
# What a search does not choose.
_GIVEN = ("data", "preprocessing", "store", "seed", "teacher", "unknown", "refit", "name")
_ASKED = "Asked for: "


class OfferedNetwork(NamedTuple):
    """A pretrained network that the user lets a search try."""

    given: Any
    #: Multiply-accumulates are unlimited unless the user limits them.
    budget: Budget
    #: Whether pictures may have another size than the recipe says.
    any_size: bool = True


@dataclass(frozen=True)
class SearchedRecipe:
    """The recipe that a search chose."""

    recipe: Recipe
    choice: Choice


def check_settings(settings: Sequence[str]) -> None:
    """Check that settings say nothing that a search chooses."""
    for text in settings:
        if text.partition("=")[0].partition(".")[0].strip() not in _GIVEN:
            raise RecipeError(
                f"{text}: the search chooses it; --set takes settings of {', '.join(_GIVEN[:-1])} "
                "here. Other settings need a recipe: --recipe photos, or --recipe glyphs"
            )


def search_recipe(
    base: Recipe,
    out: Path,
    budget: Budget,
    settings: SearchSettings,
    jobs: int = 1,
    resume: bool = False,
    data_dir: Path | None = None,
    network: OfferedNetwork | None = None,
) -> SearchedRecipe:
    """Search for the recipe that learns pictures best, and keep it in the folder of its run."""
    # The search sees training images alone. Trials are kept in ``trials/`` while it lasts, and what
    # it chose is written at once, as ``recipe.toml``: a run that is stopped resumes from them.
    check_run_folder(out)
    _check_kept(out)
    if base.teacher is not None:
        check_source(base.teacher.source)
    changes = {"deformations": None, "fine_tuning": None, "search": None}
    unlearned = base.model_copy(update=changes)
    with (
        run_folder(out, base) as folder,
        tempfile.TemporaryDirectory(prefix="visionshare-") as work,
    ):
        if not resume:
            for name in (CHOSEN, _TABLE):
                (folder / name).unlink(missing_ok=True)
            remove_folder(folder / _TRIALS)
        run = TrainingRun(unlearned, Path(work), data_dir, jobs)
        with memory_limit(run.memory, "store.memory"):
            with run.clock("reading"):
                images = told(run, prepare_images(run, validates=True))
            training = images.training
            learner = ProposalLearner(
                Data.of(training),
                training,
                base.seed,
                jobs,
                _class_weight(base),
                teacher=base.teacher,
                unlabeled=images.unlabeled,
            )
            if base.refit:
                n_refit = len(training) + len(images.test)
                settings = replace(settings, n_refit=n_refit)
            kept = KeptTrials(folder / _TRIALS, training)
            if network is not None and training.answers is None:
                transfer = _transfer(run, images, network)
                settings = replace(settings, transfer=transfer)
            choice = choose(learner, budget, settings, images.validation, kept)
            recipe = _recipe(base, choice, budget)
        rows = table(choice.trials, choice.best.proposal)
        write_text(folder / _TABLE, json.dumps(rows, indent=2) + "\n")
        write_text(folder / CHOSEN, toml_text(recipe, [_asked(budget), *_remarks(choice)]))
        remove_folder(folder / _TRIALS)
    return SearchedRecipe(load_recipe(out / CHOSEN), choice)


def _transfer(run: TrainingRun, images: RunImages, network: OfferedNetwork) -> Transfer | None:
    """Return the network that is tried on a run's pictures, None for none."""
    recipe = run.recipe
    pictures = find_pictures(recipe.data.source) if names_pictures(recipe.data.source) else None
    shapes = [images.training.images.shape[1:3]] * len(images.training)
    sides = np.array(shapes) if pictures is None else survey_pictures(pictures, run.jobs).sizes
    parameters = network_for(network.given, sides)
    if parameters is None or images.training.images.ndim < 3:
        return None
    side = min(parameters["size"], round(float(np.median(sides, axis=0).max())))
    if network.any_size and side > max(shapes[0]):
        data = recipe.data.model_copy(update={"height": side, "width": side})
        recipe = recipe.model_copy(update={"data": data})
    larger: list[RunImages] = [images] if recipe is run.recipe else []

    def read(rows: np.ndarray, validates: bool) -> np.ndarray:
        if not larger:
            larger.append(prepare_images(replace(run, recipe=recipe), validates=True))
        seen = larger[0].validation if validates else larger[0].training
        own = images.validation if validates else images.training
        assert seen is not None
        assert own is not None
        if not np.array_equal(seen.labels, own.labels):
            raise DataError(f"{recipe.data.source}: changed while it was read")
        return seen.images[rows]

    return Transfer(parameters, network.budget, read, base=recipe)


def _check_kept(folder: Path) -> None:
    """Check that what a search removes and replaces in a folder is of a search."""
    accepted = "a folder without it; move it, or choose another folder"
    file = folder / CHOSEN
    trials = folder / _TRIALS
    if os.path.lexists(file) and not _is_chosen(file):
        raise InputError("out", f"{file}, which no search wrote", accepted)
    if os.path.lexists(trials) and not _is_trials(trials):
        raise InputError("out", f"{trials}, which is of no search", accepted)


def _is_chosen(file: Path) -> bool:
    try:
        return file.read_text("utf-8").startswith(f"# {_ASKED}")
    except (OSError, ValueError):
        return False


def _is_trials(folder: Path) -> bool:
    if folder.is_symlink() or not folder.is_dir():
        return False
    return all(is_partial(path) or is_trial_file(path) for path in folder.iterdir())


def kept_recipe(base: Recipe, out: Path, budget: Budget) -> Recipe | None:
    """Return the recipe that a search chose before its run was stopped; None where none did."""
    check_run_folder(out)
    file = out / CHOSEN
    if not file.is_file():
        if (out / WORK).is_dir():
            raise RecipeError(
                f"{out}: holds a run of a recipe that no search chose; repeat its --recipe, or "
                "leave --resume out to restart"
            )
        return None
    recipe = load_recipe(file)
    asked = file.read_text("utf-8").partition("\n")[0]
    is_same = _given(recipe) == _given(_of_size(base, recipe))
    if asked != f"# {_asked(budget)}" or not is_same:
        raise RecipeError(
            f"{file}: chosen for another budget, other options or other pictures; repeat those, "
            "or leave --resume out to search again"
        )
    # Another bound of memory gives the same classifier.
    return recipe.model_copy(update={"store": base.store})


def kept_trials(out: Path) -> dict[str, list[Any]]:
    """Return the table of the trials of a folder's search, empty where there is none."""
    try:
        rows = json.loads((out / _TABLE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return rows if isinstance(rows, dict) else {}


def _of_size(base: Recipe, recipe: Recipe) -> Recipe:
    """Return what the user asked for, with the size of what a network saw."""
    if recipe.learner.kind != "dense":
        return base
    size = {"height": recipe.data.height, "width": recipe.data.width}
    return base.model_copy(update={"data": base.data.model_copy(update=size)})


def _recipe(base: Recipe, choice: Choice, budget: Budget) -> Recipe:
    """Return the recipe of a choice for the pictures of another recipe."""
    proposal = choice.best.proposal
    if isinstance(proposal.features, Dense) and choice.base is not None:
        # A network sees larger pictures.
        base = choice.base.model_copy(update={"preprocessing": base.preprocessing})
    changes = {name: getattr(base, name) for name in _GIVEN}
    changes["description"] = str(proposal)
    # Of training images it would be too low by far; whole numbers have scales of their own.
    if choice.is_honest and proposal.bits is None:
        changes["temperature"] = max(round(choice.best.temperature, 4), 1e-4)
    if isinstance(choice.best.rule, LabelRule) and choice.is_honest:
        changes["thresholds"] = [round(t, 4) for t in choice.best.rule.thresholds]
    recipe = choice.recipe
    if isinstance(proposal.features, Greedy):
        # From all images other features may be chosen, which cost more: the last rounds are left.
        training = choice.learner.images
        learned = train_images(recipe, training, choice.learner.n_jobs)
        rounds = budget.rounds_or_error(learned, training.images)
        changes["learner"] = recipe.learner.model_copy(update={"rounds": rounds})
    return recipe.model_copy(update=changes)


def _class_weight(base: Recipe) -> dict[Any, float] | str | None:
    return getattr(base.learner, "class_weight", None)


def _given(recipe: Recipe) -> dict[str, object]:
    """Return what the user says of a recipe that is searched for."""
    settings = as_settings(recipe)
    given = {name: settings[name] for name in _GIVEN if name != "store"}
    return {**given, "class_weight": _class_weight(recipe)}


def _asked(budget: Budget) -> str:
    return _ASKED + json.dumps(asdict(budget))


def _remarks(choice: Choice) -> list[str]:
    """Return what was tried, as lines of a comment, best first."""
    ranked = sorted(choice.trials, key=lambda trial: (not trial.allowed, trial.doubt))
    return [
        f"Chosen by visionshare train: {choice.best.proposal}.",
        "Tried, and compared on pictures that the trials did not learn from:",
        *map(line_of, ranked),
    ]
