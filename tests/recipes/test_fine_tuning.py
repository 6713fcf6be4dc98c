"""Recipes with [fine_tuning]: training, files, stops, errors."""

import json

import numpy as np
import pytest

import visionshare
from visionshare.datasets import load_dataset
from visionshare.errors import InputError, RecipeError
from visionshare.recipes import load_recipe, train
from visionshare.recipes.folder import LOCK, MARK, RESULTS
from visionshare.recipes.stages.images import copies_of

SMALL = [
    "learner.rounds=6", "data.limit=300", "features.parameters.n_templates=20",
    "features.parameters.n_patches=1000",
    "fine_tuning.epochs=3", "fine_tuning.batch=32", "fine_tuning.rate=0.01",
]  # fmt: skip
DEFORMED = ["fine_tuning.deformed=true", "deformations.copies=0"]


def arrays(classifier):
    return [*classifier.family.to_state()[1].values(), classifier.weights, classifier.intercept]


def same(a, b):
    return all(np.array_equal(p, q) for p, q in zip(arrays(a), arrays(b), strict=True))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(load_recipe("digits", SMALL), tmp_path_factory.mktemp("tuned") / "out")


def test_everything_is_written(run):
    names = {p.name for p in run.out.iterdir()}
    assert names == {*RESULTS, MARK, LOCK}
    metrics = json.loads((run.out / "metrics.json").read_text())
    assert metrics["features"] == 6 + 21
    assert metrics["rounds"] == 1
    assert metrics["macs"] == run.classifier.macs
    assert metrics["seconds"]["fine-tuning"] > 0
    losses = [loss for loss, _, _ in metrics["epochs"]["training"]]
    assert len(losses) == 3
    assert losses[-1] < losses[0]
    model = visionshare.load(run.out / "classifier.safetensors")
    assert same(model, run.classifier)
    assert model.metadata["recipe"]["fine_tuning"]["epochs"] == 3
    report = (run.out / "report.html").read_text()
    assert "Weights by class" in report
    # Its path is a single step: there is no curve to show, and no prefix to promise.
    assert "Stopping after any round" not in report


@pytest.mark.whole_report
def test_members_become_one(tmp_path):
    small = [*(s for s in SMALL if not s.startswith("data")), "fine_tuning.epochs=1"]
    result = train(load_recipe("digits", [*small, "members=2", "seed=1"]), tmp_path / "out")
    alone = [
        train(load_recipe("digits", [*small, f"seed={seed}"]), tmp_path / f"{seed}").classifier
        for seed in (2, 3)
    ]
    both, images = result.classifier, load_dataset("digits", "test").images
    expected = np.mean([c.decision_function(images) for c in alone], axis=0)
    np.testing.assert_allclose(both.decision_function(images), expected, rtol=1e-3, atol=1e-3)
    assert result.metrics["macs"] == both.macs == sum(c.macs for c in alone)
    assert both.metadata["recipe"]["members"] == 2
    assert (result.out / "report.html").stat().st_size > 1000
    with pytest.raises(RecipeError, match="members"):
        load_recipe("digits", ["members=2", "early_exit.tolerance=0.01"])


def test_few_images_choose_and_all_tune(tmp_path, run):
    recipe = load_recipe("digits", [*SMALL, "fine_tuning.search_images=150"])
    result = train(recipe, tmp_path / "out")
    assert result.metrics["train_images"] == 300
    assert result.classifier.family.base_.n_features_ == 6
    assert not same(result.classifier, run.classifier)
    all_of_them = load_recipe("digits", [*SMALL, "fine_tuning.search_images=300"])
    assert same(train(all_of_them, tmp_path / "all").classifier, run.classifier)


def test_tuned_templates_are_none_of_the_pool(run, tmp_path):
    plain = [s for s in SMALL if not s.startswith("fine_tuning")]
    before = train(load_recipe("digits", plain), tmp_path / "out").classifier.family
    after = run.classifier.family.base_
    assert np.array_equal(before.layout_[:, 0], after.layout_[:, 0])
    assert before.macs() == after.macs()
    assert not np.array_equal(before.templates_, after.templates_)


def test_each_epoch_sees_other_copies(tmp_path, run):
    recipe = load_recipe("digits", [*SMALL, *DEFORMED])
    images = np.random.default_rng(0).integers(0, 256, (70, 8, 8), np.uint8)
    augmentation = recipe.deformations.build()
    both = copies_of(images, augmentation, recipe.seed, 3, 2)
    assert np.array_equal(both[70:], copies_of(images, augmentation, recipe.seed, 4, 1))
    assert not np.array_equal(both[:70], both[70:])
    first = train(recipe, tmp_path / "one")
    assert first.metrics["train_images"] == 300
    assert same(first.classifier, train(recipe, tmp_path / "two", jobs=2).classifier)
    assert not same(first.classifier, run.classifier)
    # Copies that train the search are not those of the epochs: there are more of them.
    more = load_recipe("digits", [*SMALL, *DEFORMED, "deformations.copies=2"])
    assert train(more, tmp_path / "three").metrics["train_images"] == 900


@pytest.mark.parametrize("deformed", [[], DEFORMED])
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path, monkeypatch, deformed):
    from visionshare.learners.checkpoint import History

    recipe = load_recipe("digits", [*SMALL, *deformed])
    whole = train(recipe, tmp_path / "whole").classifier
    save = History.save

    def stops(self, step):
        save(self, step)
        if step.number == 2 and self.folder.name == "epochs":
            raise KeyboardInterrupt

    monkeypatch.setattr(History, "save", stops)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "out")
    monkeypatch.setattr(History, "save", save)
    assert same(whole, train(recipe, tmp_path / "out", resume=True).classifier)


@pytest.mark.parametrize(
    "setting", ["fine_tuning.epochs=0", "fine_tuning.rate=-1.0", "fine_tuning.warm_up=2.0"]
)
def test_bad_values_stop_before_work(tmp_path, setting):
    with pytest.raises(RecipeError, match=setting.split("=")[0]):
        train(load_recipe("digits", [setting]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_does_not_go_together():
    with pytest.raises(RecipeError, match=r"deformed: needs \[deformations\]"):
        load_recipe("digits", ["fine_tuning.deformed=true"])
    with pytest.raises(RecipeError, match="not with fine_tuning"):
        load_recipe("digits-early", ["fine_tuning.epochs=2"])
    with pytest.raises(RecipeError, match=r"unknown key 'fine_tuning\.epoch'.*epochs"):
        load_recipe("digits", ["fine_tuning.epoch=2"])


def test_a_family_that_cannot_move_is_refused_before_work(tmp_path):
    recipe = load_recipe("digits", [*SMALL[:2], "fine_tuning.epochs=2", "features.pool=pixels"])
    with pytest.raises(InputError, match=r"^family.*'pixels'"):
        train(recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists()


FEW_BITS = [
    *SMALL, "fine_tuning.head=linear", "quantization.weight_bits=2",
    "features={pool='network', parameters={layers=[{kind='templates', n_templates=20, size=3, "
    "grid=2, n_patches=900}]}}",
]  # fmt: skip


def test_few_bits_are_learned_and_written(tmp_path):
    recipe = load_recipe("digits", [*FEW_BITS, 'quantization.template_bits="ternary"'])
    result = train(recipe, tmp_path / "out")
    model = visionshare.load(result.out / "classifier.safetensors")
    assert [layer.bits for layer in model.family.layers_] == ["ternary"]
    assert set(np.unique(model.weights)) <= {-3, -1, 1, 3}
    test = load_dataset("digits", "test").images
    scores = model.decision_function(test)
    assert np.array_equal(scores, np.round(scores))
    metrics = json.loads((result.out / "metrics.json").read_text())
    assert metrics["features"] == model.n_features
    settings = model.metadata["recipe"]["quantization"]
    few_bits = {"template_bits": "ternary", "weight_bits": 2, "from_fraction": 0.5}
    assert settings == dict.fromkeys(("max_flash", "first_bits", "score_bits")) | few_bits


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([*FEW_BITS, "quantization.template_bits=3"], "template_bits"),
        ([*FEW_BITS, "fine_tuning.head=products"], "head"),
        ([*SMALL, "fine_tuning.head=linear", "quantization.weight_bits=4"], "layers of templates"),
        (["quantization.weight_bits=4"], "needs"),
    ],
)
def test_few_bits_that_do_not_fit_are_refused_before_work(settings, message, tmp_path):
    with pytest.raises((InputError, RecipeError), match=message):
        train(load_recipe("digits", settings), tmp_path / "out")
    assert not (tmp_path / "out").exists()
