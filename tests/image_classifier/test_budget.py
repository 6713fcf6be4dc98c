"""What users say of a budget."""

import numpy as np
import pytest

from visionshare import CompactClassifier, Pixels, ShareBoost
from visionshare.errors import InputError
from visionshare.image_classifier.budget import DEFAULT_MACS, Budget


def _classifier():
    family = Pixels().fit(np.zeros((1, 2, 2)))
    return CompactClassifier(family, np.ones((3, 4)), np.zeros(3), np.arange(3))


def test_a_number_is_one_of_multiply_accumulates():
    assert Budget.of(None) == Budget(DEFAULT_MACS)
    assert Budget.of(500).macs == 500
    assert Budget.of({"macs": 500, "bytes": 9}) == Budget(500, 9)


@pytest.mark.parametrize("budget", [0, -1, True, "small", {}, {"flops": 3}, {"macs": np.inf}])
def test_other_budgets_are_refused(budget):
    with pytest.raises(InputError, match="budget"):
        Budget.of(budget)


def test_what_a_classifier_is_allowed():
    model, images = _classifier(), np.zeros((5, 2, 2))
    assert Budget(model.macs).allows(model, images)
    assert not Budget(model.macs - 1).allows(model, images)
    assert not Budget(None, model.nbytes - 1).allows(model, images)
    assert Budget(None, None, 1e9).allows(model, images)
    assert not Budget(None, None, 1e-9).allows(model, images)


def test_rounds_within_the_limits():
    X = np.random.default_rng(0).normal(size=(60, 6))
    y = (X[:, 0] > 0) + (X[:, 1] > 0)
    family = Pixels().fit(X)
    model = ShareBoost(rounds=5).fit(X, y).to_classifier(family)
    for t in range(1, 6):
        assert Budget(model.at(t).macs).rounds(model, X) == t
    assert Budget(model.at(1).macs - 1).rounds(model, X) == 0


def test_microseconds_become_multiply_accumulates():
    model, images = _classifier(), np.zeros((5, 2, 2))
    assert Budget(700).at_the_rate_of(model, images) == Budget(700)
    assert Budget(None, None, 1e-9).at_the_rate_of(model, images).macs == 1
    assert Budget(700, None, 1e9).at_the_rate_of(model, images).macs == 700


def test_limits_are_said_in_words():
    limits = Budget.of({"macs": 20_000, "flash": "1KiB"})
    assert str(limits) == "20,000 multiply-accumulates, 1,024 bytes of flash"
