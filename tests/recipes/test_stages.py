"""Stages of a training run, each called alone."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from visionshare.columns import ArrayColumns
from visionshare.errors import InputError, RecipeError
from visionshare.generators.pixels import Pixels
from visionshare.learners import ShareBoost
from visionshare.recipes import load_recipe
from visionshare.recipes.run import Clock, TrainingRun, claim_work_folder
from visionshare.recipes.stages.evaluation import evaluate, with_test_errors
from visionshare.recipes.stages.exits import with_exits
from visionshare.recipes.stages.images import prepare_images, preprocessing_of, search_images
from visionshare.recipes.stages.learning import learn_classifier, make_learner
from visionshare.recipes.stages.results import figures_of, path_table, write_results
from visionshare.recipes.stages.tuning import fine_tuned

PIXELS = ["features={pool='pixels', parameters={}}", "learner.rounds=5", "data.limit=300"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return TrainingRun(load_recipe("digits", PIXELS), tmp_path_factory.mktemp("run") / "work")


@pytest.fixture(scope="module")
def images(run):
    return prepare_images(run)


@pytest.fixture(scope="module")
def classifier(run, images):
    family = Pixels().fit(images.training.images)
    columns = ArrayColumns.from_family(family, images.training.images)
    return learn_classifier(
        ShareBoost(rounds=5), columns, family, images.training.labels, images.training.classes
    )


def changed(run, *settings):
    return TrainingRun(load_recipe("digits", [*PIXELS, *settings]), run.work)


def test_a_clock_adds_up_what_a_stage_takes():
    clock = Clock()
    clock.seconds["learning"] = 7.0
    for stage in ("learning", "columns"):
        with clock(stage):
            pass
    assert list(clock.seconds) == ["learning", "columns"]
    assert clock.seconds["learning"] >= 7.0


def test_members_have_seeds_and_folders_of_their_own(run):
    assert run.member(0) == run
    several = changed(run, "members=3", "seed=2")
    assert [several.member(i).recipe.seed for i in range(3)] == [6, 7, 8]
    assert several.member(1).work == run.work / "member-2"
    assert several.memory == 4 << 30


def test_images_are_those_that_the_recipe_asks_for(run, images):
    assert (len(images.training), images.n_originals) == (300, 300)
    copied = prepare_images(changed(run, "deformations.copies=2"))
    assert (len(copied.training), copied.n_originals) == (900, 300)
    np.testing.assert_array_equal(copied.originals, images.training.images)
    few = prepare_images(changed(run, "data.classes=['3', '5']", "data.per_class=4"))
    assert few.training.classes == few.test.classes == ("3", "5")
    assert np.bincount(few.training.labels).tolist() == [4, 4]
    assert preprocessing_of(run.recipe).fit == "box"
    with pytest.raises(InputError, match=r"^margin"):
        prepare_images(changed(run, "preprocessing.margin=4"))


def test_some_images_of_each_class_choose_the_features(run, images):
    assert search_images(run.recipe, images) is images.training
    recipe = changed(run, "fine_tuning.search_images=100").recipe
    searched = search_images(recipe, images)
    assert len(searched) == pytest.approx(100, abs=5)
    assert set(searched.labels) == set(range(10))


def test_a_work_folder_is_of_one_recipe(run, images):
    claim_work_folder(run, images.training, resume=False)
    (run.work / "kept").touch()
    claim_work_folder(changed(run, "learner.rounds=9"), images.training, resume=True)
    assert (run.work / "kept").exists()
    other = changed(run, "learner.alpha=0.5")
    with pytest.raises(RecipeError, match="leave --resume out to restart"):
        claim_work_folder(other, images.training, resume=True)
    claim_work_folder(other, images.training, resume=False)
    assert not (run.work / "kept").exists()


def test_the_learner_is_the_recipes_own(run):
    learner = make_learner(TrainingRun(run.recipe, run.work, jobs=2))
    assert (learner.rounds, learner.n_jobs, learner.progress) == (5, 2, False)
    assert learner.checkpoint == run.work / "rounds"


def test_stages_that_a_recipe_leaves_out_change_nothing(run, images, classifier):
    assert fine_tuned(run, classifier, images) is classifier
    assert with_exits(run, classifier, images) is classifier


def test_exits_are_learned_from_validation_images(run, images, classifier):
    exits = changed(run, "early_exit={tolerance=0.2, stages=2, fraction=0.5}")
    rule = with_exits(exits, classifier, images).exit_rule
    assert 1 <= len(rule.rounds) <= 2


def test_evaluation_and_results_agree(run, images, classifier, tmp_path):
    measured = with_test_errors(classifier, images.test)
    evaluation = evaluate(measured, images.test)
    truth = np.asarray(images.test.classes)[images.test.labels]
    assert evaluation.errors == int(np.sum(classifier.predict(images.test.images) != truth))
    assert evaluation.early_exit is None
    assert measured.path[-1].test_error == pytest.approx(evaluation.error_rate)
    rows = list(csv.DictReader(io.StringIO(path_table(measured))))
    assert [int(row["n_features"]) for row in rows] == [1, 2, 3, 4, 5]
    figures = figures_of(run, measured, images, evaluation)
    assert (figures["features"], figures["test_errors"]) == (5, evaluation.errors)
    written = write_results(run, tmp_path, measured, images, evaluation)
    assert set(written) == set(figures)
    assert {file.name for file in tmp_path.iterdir()} == {
        "classifier.md", "classifier.safetensors", "metrics.json", "path.csv", "report.html",
    }  # fmt: skip
