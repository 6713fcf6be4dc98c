"""Doubtful labels: found where labels were changed, in the order of the oracle."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

from visionshare.errors import InputError
from visionshare.recipes.wrong_labels import doubtful_labels, out_of_fold, ranked_doubts


@pytest.fixture(scope="module")
def digits():
    digits = load_digits()
    return (digits.images[:500] * 15).astype(np.uint8), digits.target[:500]


def drawn(seed, n=400, k=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    scores = rng.normal(size=(n, k)) + 1.5 * np.eye(k)[rng.permuted(labels[:, None], axis=1)[:, 0]]
    probabilities = np.exp(scores)
    return labels, probabilities / probabilities.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(5))
def test_doubts_are_those_of_cleanlab(seed):
    filters = pytest.importorskip("cleanlab.filter", reason="cleanlab is not installed")
    labels, probabilities = drawn(seed)
    order, doubted = ranked_doubts(labels, probabilities)
    oracle = filters.find_label_issues(
        labels, probabilities, filter_by="confident_learning",
        return_indices_ranked_by="self_confidence", min_examples_per_class=0, n_jobs=1,
    )  # fmt: skip
    assert_array_equal(order[doubted[order]], oracle)


def test_doubts_by_the_words_of_the_definition():
    labels, probabilities = drawn(9, 60)
    order, mask = ranked_doubts(labels, probabilities)
    averages = [probabilities[labels == c, c].mean() for c in range(4)]
    doubted = []
    for i, (label, row) in enumerate(zip(labels, probabilities, strict=True)):
        sure = [c for c in range(4) if row[c] >= averages[c] - 1e-6]
        guess = int(row.argmax()) if len(sure) > 1 else (sure or [label])[0]
        if guess != label and row.argmax() != label:
            doubted.append(i)
    assert np.flatnonzero(mask).tolist() == doubted
    assert sorted(order.tolist()) == list(range(60))
    of_label = probabilities[np.arange(60), labels][order]
    assert (np.diff(of_label) >= 0).all()


def test_changed_labels_come_first(digits):
    images, truth = digits
    labels = truth.copy()
    changed = np.random.default_rng(0).permutation(500)[:25]
    labels[changed] = (labels[changed] + 3) % 10
    found = doubtful_labels(images, labels)
    assert np.isin(found.order[:25], changed).mean() > 0.8
    assert 12 <= found.n_doubted <= 45
    assert (found.probabilities[changed].argmax(axis=1) == truth[changed]).mean() > 0.8
    again = doubtful_labels(images, labels, n_jobs=2)
    assert_array_equal(again.order, found.order)


def test_copies_and_groups_are_in_one_fold(digits):
    images, labels = (values[:60] for values in digits)
    twice = np.concatenate([images, images])
    wrong = np.concatenate([labels, (labels + 1) % 10])
    # Of a copy with another label nothing is learned: both are as likely as chance has it.
    made = out_of_fold(twice, wrong)
    np.testing.assert_allclose(made[:60], made[60:], atol=1e-12)


def test_a_class_of_one_picture_is_refused(digits):
    images, _ = digits
    with pytest.raises(InputError, match="one picture"):
        out_of_fold(images[:30], np.append(np.zeros(29, int), 1))
