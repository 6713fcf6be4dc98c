"""Values from probabilities of levels."""

import numpy as np
import pytest

from visionshare.answers import (
    LabelRule,
    ValueRule,
    checked_period,
    checked_values,
    rule_from_values,
)
from visionshare.errors import InputError


@pytest.mark.parametrize("period", [None, 360.0])
@pytest.mark.parametrize("kind", ["even", "skewed", "few"])
def test_what_is_learned_has_the_value_as_its_mean(period, kind):
    rng = np.random.default_rng(0)
    values = rng.uniform(0, 360, 500)
    if kind == "skewed":
        values = np.minimum(rng.exponential(20, 500), 359)
    elif kind == "few":
        values = rng.integers(0, 12, 500) * 30.0
    rule = ValueRule.of(values, period)
    table = rule.table(values)
    assert table.min() >= 0
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-5)
    # Around a period the mean is that of sines and cosines, which is near.
    tolerance = 1e-4 if period is None else 1.0
    assert np.abs(rule.errors(rule.said(table), values)).max() < tolerance
    # Each level has an image.
    assert len(np.unique(rule.numbers(values))) == len(rule.levels)


def test_levels_reach_from_the_least_to_the_largest_value():
    values = np.r_[np.zeros(900), np.linspace(0, 1000, 100)]
    rule = ValueRule.of(values)
    assert (rule.levels[0], rule.levels[-1]) == (0.0, 1000.0)
    assert len(rule.levels) > 20
    assert ValueRule.of(np.arange(5.0)).levels == (0.0, 4.0)


def test_errors_around_a_period_go_the_shorter_way():
    rule = ValueRule((0.0, 90.0, 180.0, 270.0), 360.0)
    assert rule.errors(np.array([359.0, 10.0, 180.0]), np.array([1.0, 350.0, 90.0])).tolist() == [
        -2.0, 20.0, 90.0,
    ]  # fmt: skip


def test_the_temperature_with_the_least_errors_is_found():
    rule = ValueRule(tuple(np.linspace(0, 1, 5).tolist()))
    truth = np.array([0.25, 0.75, 0.5, 0.25])
    # What is less likely is far away: the colder, the better.
    scores = np.log(np.array([[0.1, 0.5, 0.1, 0.1, 0.2]]))[:, np.array([0, 1, 2, 3, 4])]
    scores = np.stack([np.roll(scores[0], int(4 * t) - 1) for t in truth])
    temperature, error, each = rule.judged(scores, 1.0, truth)
    assert temperature < 0.5
    assert error == pytest.approx(each.mean())
    assert error < rule.judged(scores, 16.0, truth)[1] + 1e-12


def test_score_is_one_for_the_truth_and_zero_for_the_mean():
    rule = ValueRule((0.0, 1.0, 2.0))
    truth = np.array([0.0, 1.0, 2.0, 1.0])
    assert rule.score(truth, truth) == 1
    assert rule.score(np.ones(4), truth) == 0


def test_what_is_no_value_is_refused():
    for wrong in (None, ["a", "b"], [1.0, np.nan], [1.0, None], np.zeros((2, 2))):
        with pytest.raises(InputError):
            checked_values(wrong)
    for wrong in (0, -360, True, "a", np.inf):
        with pytest.raises(InputError, match="period"):
            checked_period(wrong)
    with pytest.raises(InputError, match="two different values"):
        ValueRule.of(np.full(9, 3.0))
    with pytest.raises(InputError, match="ascend"):
        ValueRule((1.0, 0.0)).check(2)
    for wrong in ({"kind": "value"}, {"kind": "mood", "levels": [1], "period": None}, 3):
        with pytest.raises(InputError, match="answer"):
            rule_from_values(wrong)


def test_thresholds_have_the_largest_f1():
    rule = LabelRule(("a", "b"), (0.5, 0.5))
    scores = np.array([[2.0, -1.0], [1.0, -2.0], [-1.0, -3.0], [-2.0, -4.0]])
    truth = np.array([[1, 1], [1, 1], [0, 1], [0, 0]], bool)
    fitted = rule.fitted(scores, truth)
    np.testing.assert_array_equal(fitted.has(fitted.probabilities(scores, 1.0)), truth)
    assert rule.judged(scores, 1.0, truth)[1] == 0
    assert rule_from_values(fitted.to_values()) == fitted


def test_the_rarest_label_stratifies():
    rule = LabelRule(("a", "b"), (0.5, 0.5))
    truth = np.array([[1, 0], [1, 1], [1, 0], [0, 0]], bool)
    assert rule.numbers(truth).tolist() == [0, 1, 0, 2]
