"""A search for the recipe of pictures: on training pictures alone, kept, and taken up again."""

import json

import numpy as np
import pytest
from PIL import Image

from visionshare.errors import InputError, RecipeError
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.recipe_search import (
    CHOSEN,
    check_settings,
    kept_recipe,
    kept_trials,
    search_recipe,
)
from visionshare.image_classifier.state import SearchSettings
from visionshare.image_classifier.trials import ProposalLearner
from visionshare.recipes import load_recipe, train
from visionshare.recipes.folder import run_folder
from visionshare.recipes.own_pictures import PictureOptions, recipe_for_pictures
from visionshare.recipes.stages.images import load_split

# Pixels leave a search nothing to cluster: what is tested is what is kept of it.
LIMITS, QUICK = Budget(20_000), SearchSettings(features="pixels")


@pytest.fixture
def base(tmp_path, bars):
    for name in ("lying", "standing"):
        (tmp_path / "d" / name).mkdir(parents=True)
    for i, (image, label) in enumerate(zip(*bars(40, side=16), strict=True)):
        Image.fromarray(image).save(tmp_path / "d" / label / f"{i}.png")
    return recipe_for_pictures(str(tmp_path / "d"), PictureOptions(balanced=True)).recipe


@pytest.mark.whole_report
def test_the_choice_is_a_recipe_for_the_pictures(tmp_path, base):
    told = []
    options = SearchSettings(features="pixels", tried=lambda state: told.append(state.done[-1]))
    found = search_recipe(base, tmp_path / "out", LIMITS, options)
    assert told == found.choice.trials
    assert len(told) == 1
    # A fifth of the pictures tests: neither trials nor the choice have seen it.
    assert found.choice.learner.data.n == 32
    recipe = load_recipe(tmp_path / "out" / CHOSEN)
    assert recipe == found.recipe
    assert (recipe.data, recipe.preprocessing) == (base.data, base.preprocessing)
    assert (recipe.features.pool, recipe.learner.class_weight) == ("pixels", "balanced")
    text = (tmp_path / "out" / CHOSEN).read_text()
    assert "Chosen by visionshare train" in text
    assert f"{told[0].classifier.macs:,} macs" in text
    trials = kept_trials(tmp_path / "out")
    assert trials["chosen"] == [True]
    result = train(recipe, tmp_path / "out", trials=trials)
    assert result.classifier.macs <= LIMITS.macs
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    row = f"<td>{found.choice.best.proposal}</td><td>{100 * trials['error'][0]:.2f}</td>"
    assert row in page
    assert result.metrics["trials"] == trials
    # Training pictures would say that it is surer than it is.
    held_out = found.choice.best.temperature
    assert result.classifier.temperature == recipe.temperature == pytest.approx(held_out, abs=1e-4)
    assert result.metrics["test_images"] == 8
    assert result.metrics["test_origin"] == "held out"
    assert (tmp_path / "out" / CHOSEN).read_text() == text


def test_test_pictures_change_nothing(tmp_path, base):
    first = search_recipe(base, tmp_path / "a", LIMITS, QUICK).choice
    tested = {image.tobytes() for image in load_split(base, None).test.images}
    pictures = {p: np.asarray(Image.open(p)) for p in (tmp_path / "d").rglob("*.png")}
    aside = [p for p, pixels in pictures.items() if pixels.tobytes() in tested]
    assert len(aside) == 8
    for path in aside:
        Image.fromarray(255 - pictures[path]).save(path)
    again = search_recipe(base, tmp_path / "b", LIMITS, QUICK).choice
    np.testing.assert_array_equal(first.best.doubts, again.best.doubts)


def test_what_was_chosen_is_taken_up(tmp_path, base):
    out = tmp_path / "out"
    assert kept_recipe(base, out, LIMITS) is None
    found = search_recipe(base, out, LIMITS, QUICK)
    more = base.model_copy(update={"store": base.store.model_copy(update={"memory": "1GiB"})})
    kept = kept_recipe(more, out, LIMITS)
    assert kept.store.memory == "1GiB"
    assert kept.model_copy(update={"store": found.recipe.store}) == found.recipe
    with pytest.raises(RecipeError, match="another budget"):
        kept_recipe(base, out, Budget(30_000))
    with pytest.raises(RecipeError, match="other options"):
        kept_recipe(base.model_copy(update={"seed": 3}), out, LIMITS)


class _Stopped(Exception):
    """Stands for a kill."""


def _stop(state):
    raise _Stopped


def test_trials_of_a_search_that_was_stopped_are_taken_as_they_are(tmp_path, base, monkeypatch):
    whole = search_recipe(base, tmp_path / "whole", LIMITS, QUICK)
    out = tmp_path / "out"
    stopping = SearchSettings(features="pixels", tried=_stop)
    with pytest.raises(_Stopped):
        search_recipe(base, out, LIMITS, stopping)
    kept = sorted((out / "trials").glob("*.safetensors"))
    assert len(kept) == 1
    learned = []
    learn = ProposalLearner.member

    def counted(self, proposal, *others):
        learned.append(proposal)
        return learn(self, proposal, *others)

    monkeypatch.setattr(ProposalLearner, "member", counted)
    found = search_recipe(base, out, LIMITS, QUICK, resume=True)
    assert learned == []
    np.testing.assert_array_equal(found.choice.best.doubts, whole.choice.best.doubts)
    assert found.recipe == whole.recipe
    assert not (out / "trials").exists()


def test_a_broken_trial_is_made_again(tmp_path, base):
    out = tmp_path / "out"
    stopping = SearchSettings(features="pixels", tried=_stop)
    with pytest.raises(_Stopped):
        search_recipe(base, out, LIMITS, stopping)
    (kept,) = (out / "trials").glob("*.safetensors")
    kept.write_bytes(kept.read_bytes()[:100])
    with pytest.raises(_Stopped):
        search_recipe(base, out, LIMITS, stopping, resume=True)
    assert kept.stat().st_size > 100


def test_without_resume_a_search_begins_anew(tmp_path, base):
    out = tmp_path / "out"
    search_recipe(base, out, LIMITS, QUICK)
    stopping = SearchSettings(features="pixels", tried=_stop)
    with pytest.raises(_Stopped):
        search_recipe(base, out, LIMITS, stopping)
    assert kept_recipe(base, out, LIMITS) is None


def test_a_run_that_no_search_began_is_not_resumed_by_one(tmp_path, base):
    out = tmp_path / "out"
    (out / "work").mkdir(parents=True)
    (out / "work" / "recipe.json").write_text("{}")
    mark = {"format": "visionshare-run", "pipeline": "photos", "recipe": {}}
    (out / "run.json").write_text(json.dumps(mark))
    with pytest.raises(RecipeError, match="no search chose"):
        kept_recipe(base, out, LIMITS)


def test_folders_of_others_are_refused_before_anything_is_read(tmp_path, base):
    with pytest.raises(InputError, match="out"):
        search_recipe(base, tmp_path / "d", LIMITS, QUICK)
    assert not (tmp_path / "d" / CHOSEN).exists()


@pytest.mark.parametrize("setting", ["learner.rounds=3", "fine_tuning.epochs=2", "members=2"])
def test_settings_that_the_search_chooses_are_refused(setting):
    with pytest.raises(RecipeError, match="--recipe photos"):
        check_settings(["data.limit=9", setting])


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", ["trials/notes.txt", "recipe.toml", "trials"])
def test_what_no_search_wrote_is_kept(tmp_path, base, name, resume):
    out = tmp_path / "out"
    with run_folder(out, base):
        pass
    if name == "trials":
        (tmp_path / "elsewhere").mkdir()
        (out / name).symlink_to(tmp_path / "elsewhere")
    else:
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("of the user\n")
    before = sorted(path.name for path in out.rglob("*"))
    with pytest.raises(InputError, match=r"^out: got .*(recipe.toml|trials)"):
        search_recipe(base, out, LIMITS, QUICK, resume=resume)
    assert sorted(path.name for path in out.rglob("*")) == before
    assert (tmp_path / "elsewhere").is_dir() == (name == "trials")
