"""ShareBoost: the paper's guarantees, the selection rules, resume, and scikit-learn's checks."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import check_estimator

from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.learners import ShareBoost, shareboost_rounds
from visionshare.losses import MulticlassLogistic

PLAIN = {"penalty": "none", "scaling": "max_abs", "refit_tol": 1e-9, "max_iter": 3000}


@pytest.mark.parametrize(
    "settings",
    [
        {"rounds": 3, "alpha": 1e-3, "search": "random"},
        {"rounds": 3, "n_backward": 2, "criterion": "orthogonal"},
    ],
    ids=["random", "backward"],
)
def test_scikit_learn_checks(settings):
    results = check_estimator(ShareBoost(**settings), on_skip=None, on_fail=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    assert sum(r["status"] == "passed" for r in results) > 40


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def test_learns_digits_with_few_features(digits):
    X, y = digits
    model = ShareBoost(rounds=40).fit(X[:1200], y[:1200])
    assert len(model.path_) == 40
    assert len(set(model.support_.tolist())) == 40
    assert model.score(X[1200:], y[1200:]) > 0.88
    losses = [step.loss for step in model.path_]
    assert losses == sorted(losses, reverse=True)


def _loss(W, X, y):
    scores = W[:, :1] + W[:, 1:] @ X.T
    return MulticlassLogistic().value(scores, y, np.full(len(y), 1 / len(y)))


def test_lemma_3_each_round_gains_a_quarter_of_the_squared_score(digits):
    X, y = digits
    model = ShareBoost(rounds=12, **PLAIN).fit(X, y)
    losses = [step.loss for step in model.path_]
    for before, after, step in zip(losses, losses[1:], model.path_[1:], strict=False):
        assert before - after >= step.score**2 / 4 - 1e-9


def test_theorem_2_rounds_that_suffice():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 30))
    W_star = np.zeros((4, 30))
    W_star[:, :3] = rng.normal(size=(4, 3))
    y = np.argmax(X @ W_star.T, axis=1)
    omega = np.full(400, 1 / 400)
    reference = MulticlassLogistic().value(W_star @ X.T, y, omega)
    eps = 0.3
    rounds = min(30, shareboost_rounds(W_star, eps))
    # Classes that can be told apart have no minimum: refits that stop early only ask for more.
    model = ShareBoost(rounds=rounds, **{**PLAIN, "max_iter": 30}).fit(X, y)
    assert model.path_[-1].loss <= reference + eps


@pytest.mark.parametrize("k", [16, 64])
def test_section_6_logarithmic_number_of_features(k):
    bits = int(np.log2(k))
    codes = np.array([[1.0 if (c >> b) & 1 else -1.0 for b in range(bits)] for c in range(k)])
    X = np.repeat(np.hstack([codes, 2 * bits * np.eye(k)]), 3, axis=0)
    y = np.repeat(np.arange(k), 3)
    model = ShareBoost(rounds=bits, penalty="none", scaling="none").fit(X, y)
    assert set(model.support_.tolist()) == set(range(bits))
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("criterion", ["line", "column", "full"])
def test_selection_rules_pick_the_largest_decrease(criterion):
    # The brute-force twin tries each column with a generic minimizer.
    from scipy.optimize import minimize

    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 6))
    y = np.argmax(X[:, :3] + 0.7 * rng.normal(size=(60, 3)), axis=1)
    model = ShareBoost(
        rounds=2, criterion=criterion, alpha=1e-3, scaling="none", refit_tol=1e-12
    ).fit(X, y)
    first = int(model.support_[0])
    step = model.path_[0]
    W = np.column_stack([step.intercept, step.weights]).astype(float)
    base = _loss(W, X[:, [first]], y)
    Z = W[:, :1] + W[:, 1:] @ X[:, [first]].T
    omega = np.full(60, 1 / 60)
    loss = MulticlassLogistic()
    R = loss.residual(Z, y, omega)[1]
    gains = np.full(6, -np.inf)
    for j in set(range(6)) - {first}:
        g = R @ X[:, j]

        def value(w, j=j, g=g):
            if criterion == "line":
                return loss.value(Z - np.exp(w[0]) * np.outer(g, X[:, j]), y, omega)
            if criterion == "column":
                return loss.value(Z + np.outer(w, X[:, j]), y, omega) + 1e-3 * np.sum(w**2)
            V = w.reshape(3, 3)
            ridge = 1e-3 * np.sum(V[:, 1:] ** 2)
            return _loss(V, X[:, [first, j]], y) + ridge

        start = {
            "line": np.zeros(1),
            "column": np.zeros(3),
            "full": np.pad(W, ((0, 0), (0, 1))).ravel(),
        }
        ridge = 1e-3 * np.sum(W[:, 1:] ** 2) if criterion == "full" else 0.0
        gains[j] = base + ridge - minimize(value, start[criterion]).fun
    assert int(model.support_[1]) == int(np.argmax(gains))
    assert_allclose(model.path_[1].score, gains.max(), rtol=2e-3)


def test_groups_enter_together(digits):
    X, y = digits
    groups = np.arange(64) // 8
    columns = ArrayColumns(X, groups=groups, dtype="float64")
    model = ShareBoost(rounds=3).fit(columns, y)
    for step in model.path_:
        assert len(step.feature) == 8
        assert len({int(groups[j]) for j in step.feature}) == 1
    scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    omega = np.full(len(y), 1 / len(y))
    prior = np.log(np.bincount(y) / len(y))
    start = MulticlassLogistic()
    Z = np.repeat(prior[:, None], len(y), axis=1)
    from scipy.optimize import minimize

    best = minimize(lambda b: start.value(Z + b[:, None], y, omega), np.zeros(10))
    R = start.residual(Z + best.x[:, None], y, omega)[1]
    norms = np.abs(R @ scaled).sum(axis=0)
    sums = np.bincount(groups, norms)
    assert int(groups[model.path_[0].feature[0]]) == int(np.argmax(sums))


def test_same_bits_for_threads_and_screening_everything(digits):
    X, y = digits
    one = ShareBoost(rounds=6).fit(X, y)
    two = ShareBoost(rounds=6, n_jobs=2).fit(X, y)
    assert_array_equal(one.coef_, two.coef_)
    screened = ShareBoost(rounds=6, search="screened", search_options={"keep": 64}).fit(X, y)
    assert_array_equal(one.support_, screened.support_)


def test_screened_search_finds_nearly_the_best(digits):
    X, y = digits
    options = {"fraction": 0.3, "keep": 8}
    exact = ShareBoost(rounds=15).fit(X, y)
    screened = ShareBoost(rounds=15, search="screened", search_options=options).fit(X, y)
    assert screened.path_[-1].loss <= 1.05 * exact.path_[-1].loss


def test_a_stopped_run_resumes_to_the_same_bits(digits, tmp_path):
    X, y = digits
    whole = ShareBoost(rounds=8).fit(X, y)
    ShareBoost(rounds=5, checkpoint=tmp_path / "run").fit(X, y)
    os.truncate(tmp_path / "run" / "round-00005.safetensors", 100)
    resumed = ShareBoost(rounds=8, checkpoint=tmp_path / "run").fit(X, y)
    assert_array_equal(whole.support_, resumed.support_)
    assert_array_equal(whole.coef_, resumed.coef_)
    assert whole.temperature_ == resumed.temperature_
    with pytest.raises(InputError, match=r"^checkpoint: got"):
        ShareBoost(rounds=8, alpha=1e-2, checkpoint=tmp_path / "run").fit(X, y)


@pytest.mark.parametrize("scaling", ["none", "max_abs"])
def test_rounds_of_other_examples_are_not_resumed(scaling, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    first, second = (rng.integers(0, 2, (200, 12)).astype(float) for _ in range(2))
    first[:, 2] = second[:, 9] = y
    ShareBoost(2, scaling=scaling, checkpoint=tmp_path / "run").fit(first, y)
    with pytest.raises(InputError, match=r"^checkpoint: got"):
        ShareBoost(2, scaling=scaling, checkpoint=tmp_path / "run").fit(second, y)


def test_early_stop_keeps_the_best_round(digits):
    X, y = digits
    rng = np.random.default_rng(0)
    X = np.hstack([X[:200], rng.normal(size=(200, 100))])
    model = ShareBoost(rounds=60, validation_fraction=0.3, patience=5, alpha=0, penalty="none")
    model.fit(X, y[:200])
    errors = [step.validation_error for step in model.path_]
    assert len(errors) < 60
    assert errors[-1] == min(errors)


def test_a_validation_mask_is_of_booleans(digits):
    X, y = digits
    for wrong, given in ((y > 3)[1:], "bool"), (y, "int64"):
        with pytest.raises(InputError, match=rf"^validation: got '{given} of shape"):
            ShareBoost(rounds=2).fit(X, y, validation=wrong)


def test_validation_examples_do_not_train(digits):
    X, y = digits
    mask = np.arange(len(y)) % 3 == 0
    model = ShareBoost(rounds=5).fit(X, y, validation=mask)
    alone = ShareBoost(rounds=5).fit(X[~mask], y[~mask])
    assert_array_equal(model.support_, alone.support_)
    assert_allclose(model.coef_, alone.coef_, rtol=1e-6, atol=1e-9)
    assert model.path_[-1].validation_error == np.mean(model.predict(X[mask]) != y[mask])


def test_class_weights_are_sample_weights(digits):
    X, y = digits
    balanced = ShareBoost(rounds=4, class_weight={c: 1.0 + c for c in range(10)}).fit(X, y)
    weighted = ShareBoost(rounds=4).fit(X, y, sample_weight=1.0 + y)
    assert_array_equal(balanced.coef_, weighted.coef_)


def test_probabilities_are_less_confident_than_the_margin_makes_them(digits):
    X, y = digits
    model = ShareBoost(rounds=40).fit(X[:1000], y[:1000])
    honest = log_loss(y[1000:], model.predict_proba(X[1000:]))
    model.temperature_ = 1.0
    assert honest < log_loss(y[1000:], model.predict_proba(X[1000:]))


def test_tol_stops(digits):
    X, y = digits
    model = ShareBoost(rounds=60, tol=0.1).fit(X, y)
    assert len(model.path_) < 30
    losses = [step.loss for step in model.path_]
    assert losses[-2] - losses[-1] < 0.11 * losses[-2]


def test_tol_stops_where_it_would_have_after_a_resumed_first_round(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(120, 10)), np.arange(120) % 3
    whole = ShareBoost(rounds=8, tol=0.05).fit(X, y)
    assert len(whole.support_) == 1
    model = ShareBoost(rounds=1, tol=0.05, checkpoint=tmp_path / "run").fit(X, y)
    model.set_params(rounds=8).fit(X, y)
    assert_array_equal(model.support_, whole.support_)
    assert_array_equal(model.coef_, whole.coef_)


@pytest.mark.parametrize("penalty", ["none", "ridge", "l1", "max"])
def test_penalties_train(digits, penalty):
    X, y = digits
    model = ShareBoost(rounds=8, penalty=penalty, alpha=1e-3).fit(X[:500], y[:500])
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"rounds": 0}, "rounds"),
        ({"rounds": 2.5}, "rounds"),
        ({"criterion": "best"}, "criterion"),
        ({"search": "all"}, "search"),
        ({"search": "screened", "search_options": {"kepp": 3}}, "search_options"),
        ({"search": "screened", "search_options": {"keep": 0}}, "keep"),
        ({"penalty": "l3"}, "penalty"),
        ({"alpha": -1}, "alpha"),
        ({"scaling": "cube"}, "scaling"),
        ({"margin": float("nan")}, "margin"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"patience": 0}, "patience"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_parameters_are_named(digits, parameters, named):
    with pytest.raises(InputError, match=f"^{named}: got"):
        ShareBoost(**parameters).fit(*digits)


def test_columns_and_labels_must_agree(digits):
    X, y = digits
    with pytest.raises(InputError, match=r"^y: got"):
        ShareBoost().fit(ArrayColumns(X), y[:-1])
    with pytest.raises(InputError, match="class"):
        ShareBoost().fit(ArrayColumns(X), np.zeros(len(y)))


def test_a_dear_mistake_becomes_rare():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 6))
    X[np.arange(600), y] += 1.0
    names = np.array(["a", "b", "c"])[y]
    margin = np.ones((3, 3))
    margin[0, 1] = 8.0
    plain = ShareBoost(6).fit(X, names)
    dear = ShareBoost(6, margin=margin).fit(X, names)
    of_a = names == "a"
    mistaken = [np.mean(model.predict(X[of_a]) == "b") for model in (plain, dear)]
    assert mistaken[1] < 0.3 * mistaken[0]
    same = ShareBoost(6, margin=np.ones((3, 3)).tolist()).fit(X, names)
    assert_allclose(same.coef_, plain.coef_)
    with pytest.raises(InputError, match=r"^margin: got '2 classes'"):
        ShareBoost(6, margin=np.ones((2, 2))).fit(X, names)
