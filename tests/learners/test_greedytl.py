"""GreedyTL against the naive formula, ridge regression and scikit-learn's checks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge

from visionshare import GreedyTL, Pixels, ShareBoost, SourceClassifiers, UnionOfFamilies, load
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.search import RandomSubset
from visionshare.testing import check_learner


def _data(m=24, d=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * rng.uniform(0.1, 5, d) + rng.normal(size=d)
    y = np.where(X[:, 3] / X[:, 3].std() - X[:, 9] / X[:, 9].std() + 0.3 * rng.normal(size=m) > 0,
                 "new", "old")  # fmt: skip
    return X, y


def _naive(X, y, alpha, k, candidates=None):
    """The selection by its definition: solve ridge regression for every candidate of a round."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    t = np.where(y == np.unique(y)[1], 1.0, -1.0)
    t = t - t.mean()
    chosen, weights = [], None
    for step in range(k):
        errors = {}
        for j in range(Z.shape[1]) if candidates is None else candidates[step]:
            if j not in chosen:
                S = Z[:, [*chosen, j]]
                w = np.linalg.solve(S.T @ S + alpha * np.eye(S.shape[1]), S.T @ t)
                errors[j] = np.sum((t - S @ w) ** 2) + alpha * w @ w, w
        best = min(errors, key=lambda j: errors[j][0])
        chosen.append(best)
        weights = errors[best][1]
    return chosen, weights


@pytest.mark.parametrize("alpha", [0.1, 1.0, 30.0])
def test_set_and_weights_are_the_naive_ones(alpha):
    X, y = _data()
    model = GreedyTL(rounds=8, alpha=alpha, tol=0).fit(X, y)
    chosen, weights = _naive(X, y, alpha, 8)
    assert model.support_.tolist() == chosen
    assert_allclose(model.coef_[0], weights / X[:, chosen].std(axis=0), rtol=1e-8)


def test_every_round_is_ridge_regression_on_its_columns():
    X, y = _data()
    model = GreedyTL(rounds=6, alpha=2.0, tol=0).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    t = np.where(y == "old", 1.0, -1.0)
    for r in model.rounds_[0]:
        S = Z[:, model.support_[: r.number]]
        ridge = Ridge(alpha=2.0).fit(S, t)
        assert_allclose(r.coef[0], ridge.coef_, rtol=1e-8)
        left = np.sum((t - ridge.predict(S)) ** 2) + 2.0 * np.sum(ridge.coef_**2)
        assert_allclose(r.loss, left / np.sum((t - t.mean()) ** 2), rtol=1e-8)
    assert_allclose(model.decision_function(X), ridge.predict(S), rtol=1e-8)


def test_without_an_intercept_the_mean_example_decides():
    X, y = _data()
    y[:14] = "old"
    plain = GreedyTL(rounds=4, tol=0).fit(X, y)
    model = GreedyTL(rounds=4, tol=0, fit_intercept=False).fit(X, y)
    assert_array_equal(model.support_, plain.support_)
    assert_array_equal(model.coef_, plain.coef_)
    share = np.mean(np.where(y == "old", 1.0, -1.0))
    assert abs(share) > 0.1
    assert_allclose(model.decision_function(X), plain.decision_function(X) - share, atol=1e-10)
    assert_allclose(model.decision_function(X.mean(axis=0)[None]), 0, atol=1e-10)
    last = model.path_[-1]
    assert_allclose(X[:, model.support_] @ last.weights[1] + last.intercept[1],
                    model.decision_function(X) / 2, rtol=1e-4, atol=1e-5)  # fmt: skip


def test_left_out_scores_are_those_of_regressions_without_the_example():
    X, y = _data()
    r = GreedyTL(rounds=4, tol=0).fit(X, y).rounds_[0][-1]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    t = np.where(y == "old", 1.0, -1.0)
    t = t - t.mean()
    S = Z[:, GreedyTL(rounds=4, tol=0).fit(X, y).support_]
    for i in (0, 7, 20):
        others = np.arange(len(t)) != i
        w = np.linalg.solve(S[others].T @ S[others] + np.eye(4), S[others].T @ t[others])
        assert_allclose(r.left_out[i], S[i] @ w, rtol=1e-8)


def _left_out_error(X, y, alpha, k):
    """Squared errors of selections and regressions, each without one example."""
    truth, total = np.where(y == np.unique(y)[1], 1.0, -1.0), 0.0
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        few = X[others]
        part = truth[others]
        # The naive selection wants labels; those of the others have both.
        chosen, weights = _naive(few, y[others], alpha * (len(y) - 1) / len(y), k)
        z = (X[i] - few.mean(axis=0)) / few.std(axis=0)
        score = part.mean() + z[chosen] @ weights
        total += (np.clip(score, -1, 1) - truth[i]) ** 2
    return total


@pytest.mark.parametrize("seed", [0, 1])
def test_alpha_is_that_of_the_least_left_out_error(seed):
    X, y = _data(m=14, d=12, seed=seed)
    model = GreedyTL(rounds=3, alpha="auto", tol=0).fit(X, y)
    alphas = len(y) * 10.0 ** (np.arange(4, -7, -1) / 2)
    errors = [_left_out_error(X, y, alpha, 3) for alpha in alphas]
    assert_allclose(model.alphas_, alphas[np.argmin(errors)])
    same = GreedyTL(rounds=3, alpha=float(model.alphas_[0]), tol=0).fit(X, y)
    assert_allclose(model.decision_function(X), same.decision_function(X), rtol=1e-10)


@pytest.mark.parametrize("seed", [0, 1])
def test_rounds_are_those_of_the_least_left_out_error(seed):
    X, y = _data(m=14, d=12, seed=seed)
    model = GreedyTL(rounds="auto", alpha=3.0, tol=0).fit(X, y)
    # The naive error takes a part of alpha for each fold; the model takes a given one as it is.
    errors = [_left_out_error(X, y, 3.0 * 14 / 13, k) for k in range(1, 13)]
    assert len(model.support_) == 1 + np.argmin(errors)
    assert_array_equal(model.alphas_, 3.0)
    same = GreedyTL(rounds=len(model.support_), alpha=3.0, tol=0).fit(X, y)
    assert_array_equal(model.decision_function(X), same.decision_function(X))


@pytest.mark.parametrize("seed", [0, 5, 9])
def test_examples_of_weight_zero_are_in_no_fold(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 15))
    y = X[:, 7] + 0.8 * X[:, 11] + rng.normal(size=40) > 0
    weights = np.ones(40)
    weights[rng.permutation(40)[:14]] = 0
    counted = weights > 0
    weighted = GreedyTL(rounds="auto", alpha="auto").fit(X, y, weights)
    alone = GreedyTL(rounds="auto", alpha="auto").fit(X[counted], y[counted])
    assert_allclose(weighted.alphas_, alone.alphas_)
    assert_array_equal(weighted.support_, alone.support_)
    assert_allclose(weighted.coef_, alone.coef_, rtol=1e-9)


def test_alpha_and_rounds_are_chosen_together():
    X, y = _data(m=14, d=11)
    model = GreedyTL(rounds="auto", alpha="auto", tol=0).fit(X, y)
    alphas = len(y) * 10.0 ** (np.arange(4, -7, -1) / 2)
    errors = np.array([[_left_out_error(X, y, a, k) for k in range(1, 12)] for a in alphas])
    best, number = np.unravel_index(errors.argmin(), errors.shape)
    assert_allclose(model.alphas_, alphas[best])
    assert len(model.support_) == number + 1


def test_each_class_has_rounds_of_its_own():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 8)), np.arange(60) % 3
    X[:, 0] += 6 * (y == 0)
    X[:, 1:4] += 2.0 * (y == 1)[:, None]
    model = GreedyTL(rounds="auto", alpha="auto").fit(X, y)
    assert len({len(rounds) for rounds in model.rounds_}) > 1
    assert model.score(X, y) > 0.9


def test_of_noise_weights_are_small():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 30)), np.arange(60) % 2
    fixed = GreedyTL(rounds=10, tol=0).fit(X, y)
    tuned = GreedyTL(rounds=10, tol=0, alpha="auto").fit(X, y)
    assert np.abs(tuned.coef_).sum() < 0.2 * np.abs(fixed.coef_).sum()


def test_alpha_is_a_number_or_auto():
    X, y = _data()
    with pytest.raises(InputError, match="alpha"):
        GreedyTL(alpha="best").fit(X, y)
    for rounds in ("best", 0, 1.5):
        with pytest.raises(InputError, match="rounds"):
            GreedyTL(rounds=rounds).fit(X, y)


def test_all_candidates_drawn_are_all_candidates():
    X, y = _data()
    exact = GreedyTL(rounds=7, tol=0).fit(X, y)
    drawn = GreedyTL(rounds=7, tol=0, search="random", search_options={"n": 40}).fit(X, y)
    assert_array_equal(drawn.support_, exact.support_)
    assert_allclose(drawn.coef_, exact.coef_, rtol=1e-10)


def test_fewer_drawn_are_the_best_of_the_draw():
    X, y = _data()
    model = GreedyTL(rounds=5, tol=0, search="random", search_options={"n": 6}, random_state=3)
    chosen = model.fit(X, y).support_.tolist()
    draws, left = [], np.arange(40)
    for step in range(5):
        taken = []
        for last, u in enumerate(RandomSubset(6, 3).uniforms(step + 1)[0], len(left) - 6):
            position = int(u * (last + 1))
            taken.append(last if position in taken else position)
        draws.append(np.sort(left[taken]))
        left = left[left != chosen[step]]
    assert chosen == _naive(X, y, 1.0, 5, draws)[0]


def test_groups_enter_together():
    X, y = _data()
    columns = ArrayColumns(X, dtype="float64", groups=np.arange(40) // 2)
    model = GreedyTL(rounds=3, tol=0).fit(columns, y)
    pairs = model.support_.reshape(-1, 2)
    assert_array_equal(pairs[:, 0] + 1, pairs[:, 1])


def test_it_stops_when_nothing_is_gained():
    X, y = _data()
    assert len(GreedyTL(rounds=40, tol=0.05).fit(X, y).support_) < 10
    rounds = GreedyTL(rounds=40, tol=0.05).fit(X, y).rounds_[0]
    errors = [1.0] + [r.loss for r in rounds]
    assert (-np.diff(errors)[:-1] >= 0.05).all()
    assert -np.diff(errors)[-1] < 0.05


@pytest.mark.parametrize(
    "search", ["exhaustive", pytest.param("random", marks=pytest.mark.exhaustive)]
)
def test_it_is_a_learner(search):
    check_learner(GreedyTL(search=search))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X, y


def test_sources_of_other_classes_help(digits):
    X, y = digits
    sources = []
    for c in range(8):
        # Three hundred digits teach a source enough.
        other = np.flatnonzero(y < 8)[:300]
        sources.append(LogisticRegression(max_iter=500).fit(X[other], y[other] == c))
    rng = np.random.default_rng(0)
    few = np.concatenate([rng.choice(np.flatnonzero(y == c), 6, replace=False) for c in (8, 9)])
    test = np.setdiff1d(np.flatnonzero(y >= 8), few)
    model = GreedyTL(sources=sources, rounds=10).fit(X[few], y[few])
    assert model.chosen_sources_
    for name, source, output, weight in model.chosen_sources_:
        assert (name, output) == (9, 0)
        assert 64 + source in model.support_
        assert weight != 0
    assert model.score(X[test], y[test]) > 0.8


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c")])
def test_chosen_sources_have_classes_of_any_kind(names):
    X = np.random.default_rng(0).normal(size=(120, 10))
    index = np.digitize(X[:, 3], np.linspace(-1, 1, len(names) + 1)[1:-1])
    y = np.array(names, dtype=object)[index]
    model = GreedyTL(2, sources=[lambda X: np.sign(X[:, 3])]).fit(X, y)
    plain = GreedyTL(2, sources=[lambda X: np.sign(X[:, 3])]).fit(X, y.astype(str))
    assert model.chosen_sources_
    assert model.chosen_sources_ == plain.chosen_sources_
    assert all(type(entry[0]) is str for entry in model.chosen_sources_)


def test_the_classifier_file_holds_compact_sources(digits, tmp_path):
    X, y = digits[0].astype(np.float32), digits[1]
    family = Pixels().fit(X)
    ours = np.flatnonzero(y >= 8)
    source = ShareBoost(rounds=10).fit(X[ours[200:]], y[ours[200:]]).to_classifier(family)
    few = ours[:12]
    whole = UnionOfFamilies((Pixels(), SourceClassifiers([source]))).fit(X)
    columns = ArrayColumns.from_family(whole, X[few])
    model = GreedyTL(rounds=12).fit(columns, y[few])
    assert (model.support_ >= 64).any()
    compact = model.to_classifier(whole)
    compact.save(tmp_path / "c.safetensors")
    test = ours[12:200]
    again = load(tmp_path / "c.safetensors")
    assert_array_equal(again.predict(X[test]), compact.predict(X[test]))
    assert np.mean(again.predict(X[test]) == y[test]) > 0.8


@pytest.mark.parametrize(
    ("name", "value"),
    [("rounds", 0), ("alpha", 0), ("alpha", "x"), ("tol", -1), ("search", "screened"),
     ("search_options", {"m": 3}), ("fit_intercept", "no")],
)  # fmt: skip
def test_wrong_settings_are_refused_before_work(name, value):
    with pytest.raises(InputError, match=rf"^{name}: got"):
        GreedyTL(**{name: value}).check_parameters()


def test_sources_belong_to_the_family_of_columns():
    X, y = _data()
    with pytest.raises(InputError, match=r"^sources: got"):
        GreedyTL(sources=[lambda X: X[:, 0]]).fit(ArrayColumns(X), y)
