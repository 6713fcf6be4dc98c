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
def test_the_order_is_that_of_cleanlab(seed):
    rank = pytest.importorskip("cleanlab.rank", reason="cleanlab is not installed")
    labels, probabilities = drawn(seed)
    order, _ = ranked_doubts(labels, probabilities)
    oracle = rank.order_label_issues(np.ones(len(labels), bool), labels, probabilities)
    assert_array_equal(order, oracle)


def test_a_label_is_doubted_where_another_class_is_five_times_as_probable():
    probabilities = np.array([[0.1, 0.6, 0.3], [0.15, 0.6, 0.25], [0.8, 0.1, 0.1], [0.4, 0.2, 0.4]])
    order, doubted = ranked_doubts(np.array([0, 0, 0, 1]), probabilities)
    assert doubted.tolist() == [True, False, False, False]
    assert order.tolist() == [0, 1, 3, 2]


def test_changed_labels_come_first(digits):
    images, truth = digits
    labels = truth.copy()
    changed = np.random.default_rng(0).permutation(500)[:25]
    labels[changed] = (labels[changed] + 3) % 10
    found = doubtful_labels(images, labels)
    assert np.isin(found.order[:25], changed).mean() > 0.8
    assert 12 <= found.n_doubted <= 45
    assert (found.probabilities[changed].argmax(axis=1) == truth[changed]).mean() > 0.8


def test_threads_change_no_order(digits):
    images, labels = (values[:60] for values in digits)
    one, two = (doubtful_labels(images, labels, n_jobs=n) for n in (1, 2))
    assert_array_equal(one.order, two.order)


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
