"""Several labels of an image in Python: a table of 0 and 1 in, one out, as in scikit-learn."""

import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import accuracy_score, get_scorer

from visionshare import ImageClassifier, load
from visionshare.errors import InputError

NAMES = ("bar", "dot", "edge")


def _pictures(n, seed):
    """Return pictures with a bar, a dot and an edge, or without, and which they have."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, 3)) < (0.5, 0.4, 0.25)).astype(int)
    images = rng.integers(0, 50, (n, 16, 16), np.uint8)
    for image, (bar, dot, edge) in zip(images, truth, strict=True):
        image[3:5, 2:14] += 180 * np.uint8(bar)
        image[9:12, 4:7] += 180 * np.uint8(dot)
        image[:, 13:15] += 120 * np.uint8(edge)
    return images, truth


IMAGES, TRUTH = _pictures(160, 0)
OTHERS, OTHER_TRUTH = _pictures(80, 1)


@pytest.fixture(scope="module")
def fitted():
    model = ImageClassifier(budget=30_000, time=3, n_jobs=1)
    return model.fit(IMAGES, pd.DataFrame(TRUTH, columns=NAMES))


def test_predictions_are_a_table_like_that_of_training(fitted):
    assert fitted.classes_.tolist() == list(NAMES)
    said = fitted.predict(OTHERS)
    assert said.shape == (80, 3)
    assert set(np.unique(said)) == {0, 1}
    assert (said == OTHER_TRUTH).mean() > 0.85
    assert fitted.score(OTHERS, OTHER_TRUTH) == accuracy_score(OTHER_TRUTH, said)
    weights = np.arange(80)
    weighted = accuracy_score(OTHER_TRUTH, said, sample_weight=weights)
    assert fitted.score(OTHERS, OTHER_TRUTH, weights) == pytest.approx(weighted)
    assert fitted.decision_function(OTHERS).shape == fitted.predict_proba(OTHERS).shape == (80, 3)
    for name in ("f1_macro", "average_precision", "roc_auc"):
        assert get_scorer(name)(fitted, OTHERS, OTHER_TRUTH) > 0.85
    assert 0 <= fitted.validation_error_ < 0.2


def test_a_file_says_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "things.safetensors")
    again = ImageClassifier.load(tmp_path / "things.safetensors")
    np.testing.assert_array_equal(again.predict(OTHERS), fitted.predict(OTHERS))
    texts = load(tmp_path / "things.safetensors").predict(OTHERS).tolist()
    rows = [[name for name, has in zip(NAMES, row, strict=True) if has] for row in OTHER_TRUTH]
    assert np.mean([text == ";".join(row) for text, row in zip(texts, rows, strict=True)]) > 0.7


def test_exports_of_it(fitted, tmp_path):
    if shutil.which("gcc") is not None:
        assert "has" in (fitted.export(tmp_path / "c")[0]).read_text(encoding="utf-8")
    pytest.importorskip("onnx")
    (file,) = fitted.export(tmp_path / "things.onnx", "onnx")
    assert file.stat().st_size > 1000


def test_tables_of_any_kind_have_numbers_as_labels():
    settings = {"budget": 20_000, "time": 0.5, "n_jobs": 1}
    dense = ImageClassifier(**settings).fit(IMAGES, TRUTH.tolist())
    sparse = ImageClassifier(**settings).fit(IMAGES, csr_matrix(TRUTH), np.ones(160))
    assert dense.classes_.tolist() == sparse.classes_.tolist() == [0, 1, 2]
    assert dense.predict(OTHERS).shape == sparse.predict(OTHERS).shape == (80, 3)


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"features": "pixels"}, TRUTH, "features.*several labels"),
        ({"class_weight": "balanced"}, TRUTH, "class_weight.*several labels"),
        ({"teacher": "self"}, TRUTH, "teacher"),
        ({"budget": 500}, TRUTH, "budget"),
        ({"reject": 0.01}, TRUTH, "reject.*several labels"),
        ({}, 2 * TRUTH, "a table of 0 and 1"),
        ({}, [{"bar"}] * 160, "MultiLabelBinarizer"),
        ({}, [["bar"], *[[]] * 159], "MultiLabelBinarizer"),
        ({}, np.ones_like(TRUTH), "in all training images"),
        ({}, TRUTH[:20], "one target for each of 160"),
    ],
)
def test_what_cannot_be_learned_is_refused_before_work(parameters, y, message):
    with pytest.raises(InputError, match=message):
        ImageClassifier(**parameters, n_jobs=1).fit(IMAGES, y)


def test_vectors_have_one_class():
    with pytest.raises(InputError, match="images, to learn several labels"):
        ImageClassifier(n_jobs=1).fit(IMAGES.reshape(160, -1), TRUTH)


def test_a_fit_that_goes_on_has_classes(fitted):
    model = ImageClassifier(warm_start=True, n_jobs=1)
    model.classifier_ = fitted.classifier_
    with pytest.raises(InputError, match="other answers"):
        model.fit(IMAGES, TRUTH)
