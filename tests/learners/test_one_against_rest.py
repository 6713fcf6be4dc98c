"""One against the rest: learners of single classes, joined."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from visionshare import OneAgainstRest, ShareBoost
from visionshare.errors import InputError
from visionshare.testing import check_learner


def test_it_is_a_learner():
    check_learner(OneAgainstRest(rounds=4))


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


def test_wrong_settings_are_refused():
    kept = ShareBoost(checkpoint="rounds")
    for wrong in ({"rounds": 0}, {"learner": 3}, {"learner": kept}):
        (name,) = wrong
        with pytest.raises(InputError, match=rf"^{name}: got"):
            OneAgainstRest(**wrong).check_parameters()
