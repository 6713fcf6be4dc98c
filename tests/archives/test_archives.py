"""Files of every format and version that can be read answer as the library that wrote them did."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

import visionshare
from visionshare import ShareBoost
from visionshare.classifier import ExitRule
from visionshare.classifier.file_format import FORMAT_VERSION
from visionshare.datasets import load_dataset
from visionshare.errors import InputError
from visionshare.generators.family_file import read_family
from visionshare.learners.checkpoint import VERSION as CHECKPOINT_VERSION
from visionshare.store import open_store, verify_store
from visionshare.store.manifest import VERSION

HERE = Path(__file__).parent
SAMPLES = sorted(HERE.glob("digits-v*.safetensors"))
FAMILIES_V1 = sorted((HERE / "classifiers-v1").glob("*.safetensors"))
# Pools that make_v1.py fitted to the first digits. They are read, not fitted again: the last
# bits of a fit are those of the processor.
POOLS = ("patches", "anchors")


def pool(name):
    return read_family(HERE / f"features-v1-{name}.safetensors")


@pytest.fixture(scope="module")
def images():
    return load_dataset("digits", "train").images[:120]


@pytest.fixture(scope="module")
def answers():
    with np.load(HERE / "answers-v1.npz") as file:
        return dict(file)


def test_the_current_version_has_a_sample():
    assert HERE / f"digits-v{FORMAT_VERSION}.safetensors" in SAMPLES


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_a_sample_answers_as_it_did(path):
    images = (load_digits().images[1000:1020] * 15).astype(np.uint8)
    model = visionshare.load(path)
    answers = json.loads(path.with_suffix(".json").read_text())
    assert_allclose(model.decision_function(images), answers["scores"], atol=2e-4)
    assert model.at(5).predict(images).tolist() == answers["prefix"]
    assert model.macs == answers["macs"]


def test_labels_have_the_type_that_they_were_saved_in():
    model = visionshare.load(HERE / "labels-v2.safetensors")
    predicted = model.predict(np.array([[[9, 0], [0, 0]], [[0, 0], [0, 9]]], np.uint8))
    assert (predicted.dtype, predicted.tolist()) == (np.uint8, [250, 7])


@pytest.mark.parametrize("path", FAMILIES_V1, ids=lambda p: p.stem)
def test_a_classifier_of_every_family_answers_as_it_did(path):
    model = visionshare.load(path)
    with np.load(path.parent / "answers.npz") as answers:
        scores = answers[path.stem]
        images_key = f"{path.stem}-images"
        images = (
            answers[images_key]
            if images_key in answers
            else load_dataset("digits", "test").images[:80]
        )
    assert_allclose(model.decision_function(images), scores, rtol=1e-6, atol=1e-6)
    assert_array_equal(model.predict(images), model.classes_[np.argmax(scores, axis=1)])


def test_a_classifier_with_all_that_it_can_carry(images, answers, tmp_path):
    model = visionshare.load(HERE / "prepared-v1.safetensors")
    scores = model.decision_function(images[:9])
    # Up to 20 in size: sums of patches are rounded otherwise today.
    assert_allclose(scores, answers["prepared-v1"], 1e-6, 1e-5)
    assert_array_equal(scores.argmax(axis=1), answers["prepared-v1"].argmax(axis=1))
    assert model.exit_rule == ExitRule((1, 3), (0.5, 0.5))
    assert (model.preprocessing.fit, model.preprocessing.margin) == ("box", 1)
    assert model.preprocessing.center == "mass"
    model.save(tmp_path / "now.safetensors")
    again = visionshare.load(tmp_path / "now.safetensors")
    assert again.preprocessing == model.preprocessing
    assert_array_equal(again.decision_function(images), model.decision_function(images))


@pytest.mark.parametrize("name", [*POOLS, "deslanted"])
def test_a_family_file_gives_the_same_features(name, images, answers):
    family = pool(name)
    assert family.name == ("network" if name == "deslanted" else name)
    assert_allclose(family.transform(images[:9]), answers[f"features-v1-{name}"], 1e-6, 1e-6)


def test_a_store_of_the_current_version_has_a_sample(images, answers, tmp_path):
    folder = shutil.copytree(HERE / f"store-v{VERSION}-patches", tmp_path / "store")
    assert not verify_store(folder)
    columns = open_store(folder, pool("patches"), images)
    assert len(columns.missing) == 0
    assert_array_equal(columns.columns_of(scaled=False), answers["store-v1-patches"])


def test_a_checkpoint_of_the_current_version_is_resumed(tmp_path):
    name = f"checkpoint-v{CHECKPOINT_VERSION}"
    folder = shutil.copytree(HERE / name, tmp_path / "rounds")
    digits = load_digits()
    X, y = digits.data[:300].astype(np.float32), digits.target[:300]
    model = ShareBoost(rounds=4, checkpoint=folder).fit(X, y)
    with np.load(HERE / f"{name}.npz") as learned:
        assert_array_equal(model.coef_, learned["coef"])
        assert_array_equal(model.intercept_, learned["intercept"])
        assert_array_equal(model.support_, learned["support"])
        # The rounds were read: learning them again takes another time.
        assert [step.seconds for step in model.path_] == learned["seconds"].tolist()
    more = ShareBoost(rounds=5, checkpoint=folder).fit(X, y)
    assert_array_equal(more.support_[:4], model.support_)
    assert len(more.support_) == 5
    with pytest.raises(InputError, match="checkpoint"):
        ShareBoost(rounds=4, checkpoint=folder).fit(X, y[::-1])
