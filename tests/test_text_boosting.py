"""Boosting of words: what the script computes itself."""

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.metrics import mutual_info_score

from scripts.reproduce import text_boosting
from scripts.reproduce.text_boosting import Examples
from visionshare import StructuralBoostingClassifier
from visionshare.columns import SparseColumns


@pytest.fixture
def articles():
    rng = np.random.default_rng(0)
    X = (rng.random((200, 12)) < 0.3).astype(np.float32)
    # The last word is in no article, the first two say most of the class.
    X[:, -1] = 0
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=200) > 0.7, 1.0, -1.0)
    return [Examples(csr_array(X[part]), y[part]) for part in (slice(150), slice(150, None))]


def test_mutual_information_is_scikit_learns(articles):
    train = articles[0]
    expected = [mutual_info_score(word, train.y) for word in train.X.toarray().T]
    assert_allclose(text_boosting.information(train), expected, atol=1e-6)


def test_the_smooth_norm_takes_a_word_a_round_and_all_weights_are_optimal(articles):
    train, _ = articles
    found = text_boosting.smooth(*articles, 1.0, 3)
    assert found.words == [1, 2, 3]
    assert found.train[0] > found.train[-1]
    v = text_boosting.refitted(train.X, train.y, 1.0, np.zeros(13))
    slopes = -train.y / (1 + np.exp(train.y * (train.X @ v[:-1] + v[-1])))
    assert_allclose(train.X.T @ slopes, -np.tanh(v[:-1] / 2), atol=0.3)


def test_the_l1_norm_stops_with_the_words_that_matter(articles, monkeypatch):
    with monkeypatch.context() as patch:
        # skglm's kernels keep no cache, and compile for much longer than Python runs them here.
        patch.setattr(numba.config, "DISABLE_JIT", 1)
        found = text_boosting.sparse(*articles, 5.0)
    assert found.ended == "optimal"
    assert found.words[-1] == 2
    train, test = articles
    model = StructuralBoostingClassifier(
        "logistic", penalty="l1", alpha=5.0, solver="newton", scaling="none", calibrate=False
    ).fit(SparseColumns(train.X), train.y)
    scores = test.X[:, model.support_] @ model.coef_[0] + model.intercept_[0]
    assert found.test[-1] == pytest.approx(text_boosting.loss_of(scores, test.y), rel=1e-2)
