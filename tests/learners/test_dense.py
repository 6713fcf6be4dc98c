"""Ridge regression on all columns: its strength is that of leaving examples out, one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from visionshare import DenseClassifier
from visionshare.errors import InputError
from visionshare.learners.calibration import fit_temperature

SHARES = [1e-4, 1e-2, 1.0]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(36) % 3
    X = rng.normal(size=(36, 7))
    X[np.arange(36), y] += 1.0
    return X * [1, 5, 1, 1, 2, 1, 1] + 3, y


def _left_out(Z, signs, omega, share, groups):
    """Return the scores of each group from weights that did not see it, in loops."""
    scores = np.empty_like(signs)
    mean = omega @ signs / omega.sum()
    penalty = share * omega.sum() * np.eye(Z.shape[1])
    for group in np.unique(groups):
        seen = groups != group
        # The mean moves too, as one more column without a penalty.
        A = np.hstack([Z, np.ones((len(Z), 1))])
        P = np.pad(penalty, (0, 1))
        W = np.linalg.solve(
            (A[seen].T * omega[seen]) @ A[seen] + P,
            (A[seen].T * omega[seen]) @ (signs[seen] - mean),
        )
        scores[~seen] = A[~seen] @ W + mean
    return scores


def _scaled(X, omega, blocks):
    mean = omega @ X / omega.sum()
    deviation = np.sqrt(omega @ (X - mean) ** 2 / omega.sum())
    factors = np.repeat(blocks, blocks) ** -0.25
    return (X - mean) / deviation * factors / np.sqrt((factors**2).sum())


@pytest.mark.parametrize("copies", [0, 1])
@pytest.mark.parametrize("many", [True, False])
def test_the_strength_has_the_least_error_on_what_is_left_out(data, copies, many):
    X, y = data
    rng = np.random.default_rng(1)
    if not many:
        # More columns than examples.
        X = np.hstack([X, rng.normal(size=(36, 40))])
    X = np.vstack([X + 0.3 * rng.normal(size=X.shape) for _ in range(copies + 1)])
    blocks = [3, X.shape[1] - 3]
    y = np.tile(y, copies + 1)
    omega = np.tile(rng.uniform(0.5, 2, 36), copies + 1)
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    groups = np.tile(np.arange(36), copies + 1)
    Z = _scaled(X, omega, blocks)
    found = {s: _left_out(Z, signs, omega, s, groups) for s in SHARES}
    for share, scores in found.items():
        model = DenseClassifier(share, blocks=blocks, copies=copies).fit(X, y, omega)
        expected = fit_temperature(scores, y, omega)
        assert_allclose(model.temperature_, expected, rtol=1e-4)
    errors = {s: omega @ np.square(scores - signs).sum(axis=1) for s, scores in found.items()}
    chosen = DenseClassifier(blocks=blocks, copies=copies).fit(X, y, omega).alpha_
    scores = _left_out(Z, signs, omega, chosen, groups)
    assert omega @ np.square(scores - signs).sum(axis=1) <= min(errors.values()) * (1 + 1e-6)


def test_constant_columns_have_no_weight(data):
    X, y = data
    model = DenseClassifier().fit(np.hstack([X[:, :2], np.ones((36, 1)), X[:, 2:]]), y)
    assert model.support_.tolist() == [0, 1, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("argument", "parameters"),
    [
        ("alpha", {"alpha": 0.0}),
        ("alpha", {"alpha": "some"}),
        ("blocks", {"blocks": [3, 3]}),
        ("blocks", {"blocks": [0, 7]}),
        ("blocks", {"blocks": 7}),
        ("copies", {"copies": -1}),
        ("X", {"copies": 4}),
    ],
)
def test_bad_parameters_are_refused(data, argument, parameters):
    with pytest.raises(InputError, match=f"^{argument}: got"):
        DenseClassifier(**parameters).fit(*data)
