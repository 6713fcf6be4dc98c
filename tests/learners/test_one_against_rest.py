"""One against the rest: learners of single classes, joined."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_matrix, csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils import get_tags

from visionshare import (
    GreedyTL,
    GroupFeatureClassifier,
    OneAgainstRest,
    ShareBoost,
)
from visionshare.errors import InputError
from visionshare.testing import check_learner


def test_it_is_a_learner():
    check_learner(OneAgainstRest(rounds=2))


def test_scores_are_those_of_the_classes_alone():
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    template = ShareBoost(alpha=1e-3)
    model = OneAgainstRest(rounds=4, learner=template).fit(X, y)
    chosen = []
    for c in range(10):
        alone = ShareBoost(rounds=4, alpha=1e-3).fit(X, y == c)
        assert_allclose(model.decision_function(X)[:, c], alone.decision_function(X), rtol=1e-9)
        chosen.append(alone.support_)
    assert sorted(model.support_) == sorted(set(np.concatenate(chosen).tolist()))
    # After the first round the features are the first of each class.
    assert set(model.path_[0].feature) == {int(s[0]) for s in chosen}
    assert len(ShareBoost(rounds=4).fit(X, y).support_) < len(model.support_)


def _classes(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 20))
    X[np.arange(150), np.arange(150) % 3] += 2
    return X, np.array(["a", "b", "c"])[np.arange(150) % 3], rng.integers(0, 3, 150).astype(float)


@pytest.mark.parametrize("learner", ["jointboost", GreedyTL(sources=[len])])
def test_templates_that_make_columns_are_refused(learner):
    with pytest.raises(InputError, match=r"^learner: got"):
        OneAgainstRest(3, learner).check_parameters()


@pytest.mark.parametrize("kind", [csr_array, csc_matrix])
def test_it_takes_sparse_matrices_where_its_template_does(kind):
    X, y, _ = _classes()
    X[X < 0.5] = 0
    for learner in (None, "shareboost", GroupFeatureClassifier(alpha=2.0)):
        model = OneAgainstRest(3, learner)
        assert get_tags(model).input_tags.sparse
        model.fit(kind(X), y)
        expected = clone(model).fit(X, y)
        assert_array_equal(model.support_, expected.support_)
        assert_allclose(model.predict_proba(kind(X)), expected.predict_proba(X), rtol=1e-5)
    for learner in ("greedytl", "jointboost", 3, "one_against_rest"):
        assert not get_tags(OneAgainstRest(3, learner)).input_tags.sparse


def test_wrong_settings_are_refused():
    kept = ShareBoost(checkpoint="rounds")
    itself = {"learner": "one_against_rest"}, {"learner": OneAgainstRest()}
    for wrong in ({"rounds": 0}, {"learner": 3}, {"learner": kept}, *itself):
        (name,) = wrong
        with pytest.raises(InputError, match=rf"^{name}: got"):
            OneAgainstRest(**wrong).check_parameters()
