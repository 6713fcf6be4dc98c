"""ImageClassifier(reject=...): refused pictures, their label, and what is not accepted."""

import numpy as np
import pytest

from visionshare import ImageClassifier, load
from visionshare.errors import InputError

SETTINGS = {"features": "pixels", "n_jobs": 1}


@pytest.fixture(scope="module")
def refusing(bars):
    return ImageClassifier(reject=0.02, **SETTINGS).fit(*bars(400))


def test_pictures_of_no_class_are_refused_and_known_ones_answered(refusing, bars, tmp_path):
    known, _ = bars(400, seed=1)
    answers = refusing.predict(known)
    assert np.mean(answers == "unknown") < 0.06
    blank = np.full((3, 9, 9), 120, np.uint8)
    assert refusing.predict(blank).tolist() == ["unknown"] * 3
    assert (refusing.known(blank) < 0.02).all()
    assert refusing.classes_.tolist() == ["lying", "standing"]
    refusing.save(tmp_path / "c.safetensors")
    assert load(tmp_path / "c.safetensors").predict(known).tolist() == answers.tolist()
    loaded = ImageClassifier.load(tmp_path / "c.safetensors")
    assert loaded.predict(known).tolist() == answers.tolist()


def test_what_calibrates_does_not_train(refusing, bars):
    images, labels = bars(400)
    plain = ImageClassifier(**SETTINGS).fit(images, labels)
    assert plain.classifier_.unknown is None
    assert (plain.decision_function(images) != refusing.decision_function(images)).any()


def test_pictures_of_no_class_may_be_given(bars):
    rng = np.random.default_rng(0)
    unknown = rng.integers(0, 90, (60, 9, 9), np.uint8)
    model = ImageClassifier(reject=0.02, **SETTINGS).fit(*bars(400), unknown=unknown[:50])
    assert (model.predict(unknown[50:]) == "unknown").mean() > 0.8


def test_whole_numbers_need_a_label(bars):
    images, labels = bars(400)
    numbers = (labels == "lying").astype(int)
    with pytest.raises(InputError, match="unknown_label"):
        ImageClassifier(reject=0.02, **SETTINGS).fit(images, numbers)
    model = ImageClassifier(reject=0.02, unknown_label=-1, **SETTINGS).fit(images, numbers)
    assert model.predict(np.zeros((1, 9, 9), np.uint8)).tolist() == [-1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"reject": 2}, "reject"), ({"unknown_label": "no"}, "unknown_label")],
)
def test_settings_are_checked(bars, settings, message):
    with pytest.raises(InputError, match=message):
        ImageClassifier(**settings, **SETTINGS).fit(*bars(40))


def test_vectors_are_not_refused():
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b"])[np.arange(40) % 2]
    with pytest.raises(InputError, match="pictures"):
        ImageClassifier(reject=0.1, n_jobs=1).fit(rng.normal(size=(40, 3)), labels)
