"""Scores with products of all pairs, against the products written down."""

import numpy as np
import pytest

from visionshare.learners.fine_tuning.product_scores import ProductScores


def _drawn(products, n=4):
    rng = np.random.default_rng(0)
    raw = rng.gamma(2.0, size=(300, n))
    raw[:, 2] = 3.0  # a feature that is always the same
    weights, intercept = rng.normal(size=(3, n)), rng.normal(size=3)
    return raw, weights, intercept, ProductScores.start(weights, intercept, raw, products)


def _written(scores, X):
    """Standardized features, standardized products and scores, with nothing left out."""
    X = X.astype(np.float64)
    i, j = np.triu_indices(X.shape[1])
    P = X[:, i] * X[:, j] if scores.Q.size else np.empty((len(X), 0))
    P = (P - scores.product_offset) * scores.product_scale
    return P, X @ scores.W.T + P @ scores.Q.T + scores.c


@pytest.mark.parametrize("products", [False, True])
def test_they_begin_as_the_linear_ones_and_are_plain_ones(products):
    raw, weights, intercept, scores = _drawn(products)
    X = scores.standardized(raw)
    expected = raw @ weights.T + intercept
    np.testing.assert_allclose(scores.scores(X)[0].T, expected, rtol=1e-4, atol=1e-4)
    scores.Q[...] = np.random.default_rng(1).normal(size=scores.Q.shape)
    plain, pairs, c = scores.plain()
    i, j = np.triu_indices(4)
    values = raw @ plain.T + c + ((raw[:, i] * raw[:, j]) @ pairs.T if products else 0)
    np.testing.assert_allclose(scores.scores(X)[0].T, values, rtol=1e-3, atol=1e-3)


def test_products_are_standardized():
    raw, _, _, scores = _drawn(True)
    P, _ = _written(scores, scores.standardized(raw))
    deviation = P.std(axis=0)
    flat = scores.product_scale == 0
    assert flat.sum() == 4  # those of the feature that is always the same
    np.testing.assert_allclose(P.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(deviation[~flat], 1, rtol=1e-4)


def test_scores_and_gradients_are_those_of_the_products_written_down():
    raw, _, _, scores = _drawn(True)
    rng = np.random.default_rng(2)
    scores.Q[...] = rng.normal(size=scores.Q.shape)
    X, R = scores.standardized(raw), rng.normal(size=(3, 300)).astype(np.float32)
    P, expected = _written(scores, X)
    Z, seen = scores.scores(X)
    np.testing.assert_allclose(Z.T, expected, rtol=1e-4, atol=1e-4)
    _, (dW, dc, dQ) = scores.gradients(X, seen, R)
    np.testing.assert_allclose(dW, R @ X, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(dc, R.sum(axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dQ, R @ P, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("products", [False, True])
def test_the_gradient_in_the_features_is_that_of_differences(products):
    raw, _, _, scores = _drawn(products)
    rng = np.random.default_rng(3)
    scores.Q[...] = rng.normal(size=scores.Q.shape)
    R = rng.normal(size=(3, 300)).astype(np.float32)
    X = scores.standardized(raw)
    gradient, _ = scores.gradients(X, scores.scores(X)[1], R)
    for f in (0, 1, 3):
        moved = [raw.copy(), raw.copy()]
        moved[0][:, f] += 1e-2
        moved[1][:, f] -= 1e-2
        written = (_written(scores, scores.standardized(m).astype(np.float64))[1] for m in moved)
        up, down = (np.sum(R.T * z, axis=1) for z in written)
        np.testing.assert_allclose(gradient[:, f], (up - down) / 2e-2, rtol=0.02, atol=0.02)


def test_the_products_with_the_largest_weights_are_kept():
    _, _, _, scores = _drawn(True)
    scores.Q[...] = np.random.default_rng(4).normal(size=scores.Q.shape)
    before = scores.Q.copy()
    scores.keep(None)
    assert scores.kept.all()
    scores.keep(3)
    largest = np.sort(np.argsort(np.linalg.norm(before, axis=0))[-3:])
    np.testing.assert_array_equal(np.flatnonzero(scores.kept), largest)
    np.testing.assert_array_equal(np.flatnonzero(scores.Q.any(axis=0)), largest)
    np.testing.assert_array_equal(scores.Q[:, largest], before[:, largest])
    scores.Q += 1
    scores.drop()
    np.testing.assert_array_equal(np.flatnonzero(scores.Q.any(axis=0)), largest)
    scores.keep(3)
    np.testing.assert_array_equal(np.flatnonzero(scores.kept), largest)


@pytest.mark.parametrize("products", [False, True])
def test_some_features_score_as_all_do_with_the_others_at_their_means(products):
    raw, _, _, scores = _drawn(products)
    scores.Q[...] = np.random.default_rng(5).normal(size=scores.Q.shape)
    X = scores.standardized(raw) + np.float32(0.3)
    stay = np.array([0, 1, 3])
    taken = scores.take(stay, X)
    others = X.copy()
    others[:, 2] = X[:, 2].mean()
    if products:
        scores.Q[:, [2 in pair for pair in zip(*np.triu_indices(4), strict=True)]] = 0
    expected = scores.scores(others)[0]
    np.testing.assert_allclose(taken.scores(X[:, stay])[0], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(
        taken.standardized(raw[:, stay]), scores.standardized(raw)[:, stay]
    )


@pytest.mark.parametrize("products", [False, True])
def test_sizes_are_how_much_features_move_the_scores(products):
    raw, _, _, scores = _drawn(products)
    scores.Q[...] = np.random.default_rng(6).normal(size=scores.Q.shape)
    X = 2 * scores.standardized(raw)
    expected = []
    for f in range(4):
        W = scores.W[:, f] - scores.W[:, f].mean()
        total = np.var(np.outer(X[:, f], W), axis=0).sum()
        for column, (i, j) in enumerate(zip(*np.triu_indices(4), strict=True)):
            if products:
                Q = scores.Q[:, column] - scores.Q[:, column].mean()
                total += (Q @ Q) * (f in (i, j))
        expected.append(np.sqrt(total))
    np.testing.assert_allclose(scores.sizes(X), expected, rtol=1e-4)
    scores.W += 5
    np.testing.assert_allclose(scores.sizes(X), expected, rtol=1e-4)
