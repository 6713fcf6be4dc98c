"""Recipes with [teacher]: who teaches, what that changes, stops, errors."""

import numpy as np
import pytest

from visionshare.errors import InputError, RecipeError
from visionshare.recipes import load_recipe, train
from visionshare.recipes.teaching import teacher_recipe

SMALL = [
    "learner.rounds=6", "data.limit=300", "features.parameters.n_templates=20",
    "fine_tuning.epochs=2", "fine_tuning.batch=32", "fine_tuning.rate=0.01",
]  # fmt: skip
TAUGHT = [*SMALL, "teacher.members=2", "teacher.learner.rounds=8"]


def arrays(classifier):
    return [*classifier.family.to_state()[1].values(), classifier.weights, classifier.intercept]


def same(a, b):
    return all(np.array_equal(p, q) for p, q in zip(arrays(a), arrays(b), strict=True))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(load_recipe("digits", TAUGHT), tmp_path_factory.mktemp("taught") / "out")


def test_a_teacher_is_the_recipe_but_for_what_it_says():
    recipe = load_recipe("digits", [*TAUGHT, "seed=3", "teacher.fine_tuning.epochs=5"])
    teacher = teacher_recipe(recipe)
    assert (teacher.members, teacher.seed, teacher.teacher) == (2, 4, None)
    assert teacher.learner.rounds == 8
    assert teacher.learner.model_copy(update={"rounds": 6}) == recipe.learner
    assert (teacher.fine_tuning.epochs, teacher.fine_tuning.batch) == (5, 32)
    assert (teacher.data, teacher.features) == (recipe.data, recipe.features)
    assert teacher_recipe(load_recipe("digits", SMALL)) is None


def test_a_teacher_is_heard(run, tmp_path):
    alone = train(load_recipe("digits", SMALL), tmp_path / "alone")
    assert run.metrics["features"] == alone.metrics["features"] == 6 + 21
    assert run.metrics["seconds"]["teacher"] > 0
    assert not same(run.classifier, alone.classifier)
    unheard = [*TAUGHT, "teacher.members=1", "fine_tuning.teacher_weight=0.0"]
    assert same(
        train(load_recipe("digits", unheard), tmp_path / "out").classifier, alone.classifier
    )
    assert run.classifier.metadata["recipe"]["teacher"]["members"] == 2


@pytest.mark.parametrize(("stops", "left"), [(3, "teacher"), (5, "teacher.safetensors")])
def test_a_stopped_run_resumes_to_the_same_bits(run, tmp_path, monkeypatch, stops, left):
    from visionshare.learners.checkpoint import Checkpoint

    recipe, out, epochs, save = load_recipe("digits", TAUGHT), tmp_path / "out", [], Checkpoint.save

    def counted(self, done, place):
        save(self, done, place)
        if self.folder.name == "epochs":
            epochs.append(done)
        if len(epochs) == stops:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", counted)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, out)
    assert (out / "work" / left).exists()
    again = train(recipe, out, resume=True)
    # Two members and the pupil, two epochs each.
    assert len(epochs) == 6
    assert same(again.classifier, run.classifier)
    assert {p.name for p in out.iterdir()} == {p.name for p in run.out.iterdir()}


def test_what_does_not_go_together(tmp_path):
    with pytest.raises(RecipeError, match=r"teacher: needs \[fine_tuning\]"):
        load_recipe("digits", ["teacher.members=2"])
    with pytest.raises(RecipeError, match=r"unknown key 'teacher\.member'.*members"):
        load_recipe("digits", [*SMALL, "teacher.member=2"])
    bad = ["teacher.features.pool=patches", "teacher.features.parameters.n_templates=0"]
    recipe = load_recipe("digits", [*SMALL, *bad])
    with pytest.raises(InputError, match=r"^n_templates"):
        train(recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists()
