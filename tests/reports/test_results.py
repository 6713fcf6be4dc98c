"""The figures of results, against the same by loops and by other programs' numbers."""

import numpy as np
import pytest

from visionshare import CompactClassifier, Pixels
from visionshare.errors import InputError
from visionshare.reports import Results
from visionshare.reports.results import (
    calibration,
    error_interval,
    figures_by_class,
    most_confused,
)

rng = np.random.default_rng(0)
CLASSES = ("a", "b", "c", "never seen")
SCORES = rng.normal(size=(300, 4)) + np.array([0.5, 0.2, 0.0, -3.0])
PROBABILITIES = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)
truth, PREDICTIONS = rng.integers(0, 3, 300), PROBABILITIES.argmax(axis=1)
RESULTS = Results(np.zeros((300, 4)), truth, PREDICTIONS, PROBABILITIES, CLASSES)


def test_precision_recall_and_confusion_are_counts():
    counts = RESULTS.confusion
    for i in range(4):
        for j in range(4):
            assert counts[i, j] == sum(
                (a, b) == (i, j) for a, b in zip(truth, PREDICTIONS, strict=True)
            )
    for c, row in enumerate(figures_by_class(RESULTS)):
        assert (row.name, row.images) == (CLASSES[c], np.sum(truth == c))
        of_class, called = counts[c].sum(), counts[:, c].sum()
        assert row.recall == (counts[c, c] / of_class if of_class else None)
        assert row.precision == (counts[c, c] / called if called else None)
        if row.precision and row.recall:
            mean = 2 / (1 / row.precision + 1 / row.recall)
            assert row.f1 == pytest.approx(mean)
    assert RESULTS.errors == 300 - np.trace(counts)


def test_mistakes_are_sorted_by_confidence():
    mistakes = RESULTS.mistakes
    assert set(mistakes) == set(np.flatnonzero(truth != PREDICTIONS))
    confidences = PROBABILITIES.max(axis=1)[mistakes]
    assert (np.diff(confidences) <= 0).all()
    assert RESULTS.name_of(3) == "image 3"


def test_the_majority_is_the_most_frequent_class():
    counts = [np.sum(truth == c) for c in range(4)]
    assert counts[RESULTS.majority] == max(counts)
    assert RESULTS.majority_error == pytest.approx(1 - max(counts) / 300)


def test_the_interval_is_wilsons():
    # Newcombe, Statistics in Medicine 17, 1998, table I: 81 of 263 and 0 of 20.
    assert error_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert error_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert error_interval(0, 0) == (0.0, 1.0)


def test_calibration_is_a_mean_over_bins():
    said = calibration(RESULTS, bins=5)
    confidences, right = PROBABILITIES.max(axis=1), truth == PREDICTIONS
    total = 0.0
    for b in range(5):
        inside = (confidences >= b / 5) & (confidences < (b + 1) / 5)
        assert said.counts[b] == inside.sum()
        if inside.any():
            assert said.accuracy[b] == pytest.approx(right[inside].mean())
            total += abs(right[inside].mean() - confidences[inside].mean()) * inside.sum() / 300
    assert said.ece == pytest.approx(total)


def test_the_most_confused_pairs_come_first():
    pairs = most_confused(RESULTS, 3)
    counts = RESULTS.confusion - np.diag(np.diag(RESULTS.confusion))
    assert [pair.images for pair in pairs] == sorted(counts.ravel())[:-4:-1]
    i, j = CLASSES.index(pairs[0].true), CLASSES.index(pairs[0].predicted)
    assert counts[i, j] == pairs[0].images
    assert pairs[0].share == pytest.approx(counts[i, j] / np.sum(truth == i))


def test_results_of_a_classifier():
    images = rng.random((20, 2, 2))
    weights = np.eye(4)[:3]
    model = CompactClassifier(Pixels().fit(images), weights, np.zeros(3), np.array([7, 8, 9]))
    truth = np.array([7, 8, 9, 9] * 5)
    results = Results.of(model, images, truth, names=[str(i) for i in range(20)], origin="given")
    assert results.errors == np.sum(model.predict(images) != truth)
    np.testing.assert_array_equal(results.probabilities, model.predict_proba(images))
    assert results.name_of(2) == "2"
    lacking = Results.of(model, images, np.where(truth == 8, 5, truth))
    assert lacking.classes == ("7", "8", "9", "5")
    assert (lacking.probabilities[:, 3] == 0).all()
    assert lacking.errors >= 5


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"labels": truth[:-1]}, "labels"),
        ({"predictions": PREDICTIONS + 4}, "predictions"),
        ({"probabilities": PROBABILITIES[:, :2]}, "probabilities"),
        ({"names": ("a",)}, "names"),
        ({"origin": "found"}, "origin"),
    ],
)
def test_what_does_not_fit_is_named(changed, name):
    fields = {
        "images": np.zeros((300, 4)), "labels": truth, "predictions": PREDICTIONS,
        "probabilities": PROBABILITIES, "classes": CLASSES, **changed,
    }  # fmt: skip
    with pytest.raises(InputError, match=rf"^{name}: got"):
        Results(**fields)


def test_no_results_have_no_error():
    none = Results(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0, int), np.zeros((0, 4)), CLASSES)
    assert (none.errors, none.error_rate, none.majority_error, len(none)) == (0, 0.0, 0.0, 0)
