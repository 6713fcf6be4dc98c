"""Early exit: stages against a naive walk, the rule's promises, and the file."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits

from visionshare import CompactClassifier, RandomFourier, ShareBoost
from visionshare.classifier import EarlyExit, ExitRule, learn_exit_rule, load
from visionshare.classifier.exit_learning import candidate_rounds, expected_harm, planner
from visionshare.classifier.exit_rule import score_margins
from visionshare.classifier.file_format import FORMAT, FORMAT_VERSION
from visionshare.errors import ClassifierFileError, InputError
from visionshare.files.tensors import read_tensor_file, write_tensor_file


@pytest.fixture(scope="module")
def trained() -> tuple[CompactClassifier, np.ndarray, np.ndarray]:
    """Return a classifier of 25 features, and images that it was not trained on."""
    X, y = load_digits(return_X_y=True)
    family = RandomFourier(n_pairs=200, bandwidths=(10.0,)).fit(X[:700])
    model = ShareBoost(rounds=25).fit(family.transform(X[:700]), y[:700])
    return model.to_classifier(family), X[700:], y[700:]


def walked(classifier: CompactClassifier, rule: ExitRule, image: np.ndarray) -> tuple[int, int]:
    """Return the index of the class and the stage of one image, prefix by prefix."""
    for stage, (t, margin) in enumerate(zip(rule.rounds, rule.margins, strict=True)):
        scores = classifier.at(t).decision_function(image)[0]
        ordered = np.sort(scores)
        if ordered[-1] - ordered[-2] >= margin:
            return int(np.argmax(scores)), stage
    return int(np.argmax(classifier.decision_function(image)[0])), len(rule.rounds)


def test_stages_are_prefixes(trained) -> None:
    classifier, images, _ = trained
    prefixes = [classifier.at(t).decision_function(images) for t in (4, 9, 17)]
    rule = ExitRule((4, 9, 17), tuple(float(np.quantile(score_margins(z), 0.7)) for z in prefixes))
    early = EarlyExit(classifier, rule)
    expected = [walked(classifier, rule, image) for image in images[:200]]
    stops = early.stops(images[:200])
    assert stops.tolist() == [stage for _, stage in expected]
    assert set(stops.tolist()) == {0, 1, 2, 3}
    indices = [index for index, _ in expected]
    assert early.predict(images[:200]).tolist() == classifier.classes_[indices].tolist()
    assert early.predict(images[3]).tolist() == early.predict(images[3:4]).tolist()


def test_scores_do_not_depend_on_company_or_threads(trained) -> None:
    classifier, images, _ = trained
    early = EarlyExit(classifier, ExitRule((5, 12), (5.0, 3.0)))
    whole = early.decision_function(images, n_jobs=2)
    alone = np.concatenate([early.decision_function(image) for image in images[:40]])
    np.testing.assert_allclose(whole[:40], alone, rtol=1e-5, atol=1e-5)
    probabilities = early.predict_proba(images)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), whole.argmax(axis=1))


def test_costs_are_those_of_the_stages(trained) -> None:
    classifier, _, _ = trained
    early = EarlyExit(classifier, ExitRule((4, 9), (1.0, 1.0)))
    a, b = (classifier.path[t - 1].n_features for t in (4, 9))
    k, n = len(classifier.classes_), classifier.n_features
    second, third = (classifier.family.take(np.arange(*ends)).macs() for ends in ((a, b), (b, n)))
    first = classifier.at(4).macs
    expected = [first, first + second + k * b, first + second + third + k * (b + n)]
    assert early.costs.tolist() == expected
    assert [stage.weights.shape[1] for stage in early.stages] == [a, b, n]
    assert [stage.margin for stage in early.stages] == [1.0, 1.0, None]


def test_figures_are_those_of_the_images(trained) -> None:
    classifier, images, labels = trained
    early = EarlyExit(classifier, ExitRule((4, 9), (2.0, 1.5)))
    figures = early.measure(images, labels)
    stops = early.stops(images)
    assert figures.errors == int(np.sum(early.predict(images) != labels))
    assert figures.average_macs == pytest.approx(np.mean([early.costs[s] for s in stops]))
    assert figures.max_macs == early.costs[-1]
    assert figures.stage_fractions == tuple(float(np.mean(stops == s)) for s in range(3))
    with pytest.raises(InputError, match="labels"):
        early.measure(images, labels[:3])


def test_without_a_round_it_is_the_whole_classifier(trained) -> None:
    classifier, images, _ = trained
    early = EarlyExit(classifier, ExitRule((), ()))
    np.testing.assert_array_equal(
        early.decision_function(images), classifier.decision_function(images)
    )
    assert early.costs.tolist() == [classifier.macs]


@pytest.mark.parametrize("tolerance", [0.004, 0.02])
def test_the_rule_keeps_its_tolerance_and_saves(trained, tolerance: float) -> None:
    classifier, images, labels = trained
    rule = learn_exit_rule(classifier, images, labels, tolerance=tolerance, stages=4)
    early = EarlyExit(classifier, rule)
    right = classifier.predict(images) == labels
    became_wrong = right & (early.predict(images) != labels)
    assert became_wrong.mean() <= tolerance
    assert early.costs[early.stops(images)].mean() < 0.9 * classifier.macs
    assert len(rule.rounds) <= 4


def test_a_larger_tolerance_costs_less(trained) -> None:
    classifier, images, labels = trained
    assert learn_exit_rule(classifier, images, labels, tolerance=0.0) == ExitRule((), ())
    means = []
    for tolerance in (0.002, 0.01, 0.05):
        early = EarlyExit(
            classifier, learn_exit_rule(classifier, images, labels, tolerance=tolerance)
        )
        means.append(early.costs[early.stops(images)].mean())
    assert means[0] > means[1] > means[2]


def test_a_margin_is_the_best_of_all(trained) -> None:
    classifier, images, labels = trained
    values = classifier.family.transform(images[:150])
    candidates = candidate_rounds(classifier, values, labels[:150])
    plan = planner(classifier, candidates, 150)([2, 6, 10])
    price = 3 * plan.costs[-1]

    def total(margins: list[float]) -> float:
        stops = plan.stops(margins)
        harm = sum(r.expected[stops == i].sum() for i, r in enumerate(plan.rounds))
        return float(plan.costs[stops].sum() + price * harm)

    for i, others in product(range(3), ([3.0, 2.5, 2.0], [np.inf, 1.0, np.inf])):
        margins = list(others)
        margins[i] = plan.best_margin(i, margins, price)
        every = [np.inf, 0.0, *plan.rounds[i].margins]
        expected = min(total([*margins[:i], m, *margins[i + 1 :]]) for m in every)
        assert total(margins) == pytest.approx(expected, rel=1e-12)


def test_the_same_rule_for_any_number_of_threads(trained) -> None:
    classifier, images, labels = trained
    rules = [learn_exit_rule(classifier, images, labels, n_jobs=n) for n in (1, 2)]
    assert rules[0] == rules[1]


def test_the_probability_of_harm_is_the_likeliest_logistic_function() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    margins = rng.gamma(2.0, 2.0, 300)
    harmed = rng.random(300) < 1 / (1 + np.exp(1.0 + 0.7 * margins))
    n = harmed.sum()
    targets = np.where(harmed, (n + 1) / (n + 2), 1 / (302 - n))

    def loss(at: np.ndarray) -> float:
        z = at[0] + at[1] * margins
        return float(np.sum(np.logaddexp(0, z) - targets * z))

    a, b = minimize(loss, np.zeros(2), tol=1e-12).x
    np.testing.assert_allclose(
        expected_harm(margins, harmed), 1 / (1 + np.exp(-a - b * margins)), rtol=2e-3
    )
    none = expected_harm(margins, np.zeros(300, bool))
    np.testing.assert_allclose(none, 1 / 302, rtol=1e-3)
    # Harm that grows with the margin says nothing of it.
    assert np.ptp(expected_harm(margins, margins > 8)) == 0


def test_margins_of_scores() -> None:
    scores = np.random.default_rng(0).normal(size=(50, 6))
    expected = [sorted(row)[-1] - sorted(row)[-2] for row in scores]
    np.testing.assert_allclose(score_margins(scores), expected)


def test_a_rule_travels_in_the_file(trained, tmp_path) -> None:
    classifier, images, _ = trained
    rule = ExitRule((4, 9), (6.5, 4.25))
    replace(classifier, exit_rule=rule).save(tmp_path / "c.safetensors")
    read = load(tmp_path / "c.safetensors")
    assert read.exit_rule == rule
    assert read.summary()["exit_rounds"] == [4, 9]
    np.testing.assert_array_equal(
        EarlyExit(read).predict(images), EarlyExit(classifier, rule).predict(images)
    )
    classifier.save(tmp_path / "none.safetensors")
    assert load(tmp_path / "none.safetensors").exit_rule is None


def test_a_prefix_keeps_the_part_of_the_rule_before_its_end(trained) -> None:
    classifier, _, _ = trained
    ruled = replace(classifier, exit_rule=ExitRule((4, 9), (6.0, 4.0)))
    assert ruled.at(9).exit_rule == ExitRule((4,), (6.0,))
    assert ruled.at(2).exit_rule == ExitRule((), ())
    assert classifier.at(9).exit_rule is None


@pytest.mark.parametrize(
    "rule",
    [
        {"rounds": [4], "margins": [1.0, 2.0]},
        {"rounds": [9, 4], "margins": [1.0, 2.0]},
        {"rounds": [0], "margins": [1.0]},
        {"rounds": [25], "margins": [1.0]},
        {"rounds": [4], "margins": [-1.0]},
        {"rounds": [4], "margins": ["far"]},
        {"rounds": "45", "margins": [1.0, 2.0]},
        {"rounds": [4]},
        [4, 9],
    ],
)
def test_a_broken_rule_in_a_file(trained, tmp_path, rule) -> None:
    classifier, _, _ = trained
    path = tmp_path / "broken.safetensors"
    classifier.save(path)
    header, arrays = read_tensor_file(path, FORMAT, {FORMAT_VERSION}, ClassifierFileError)
    write_tensor_file(path, FORMAT, FORMAT_VERSION, {**header, "exit_rule": rule}, arrays)
    with pytest.raises(ClassifierFileError, match="invalid"):
        load(path)


def test_arguments(trained) -> None:
    classifier, images, labels = trained
    with pytest.raises(InputError, match="rule"):
        EarlyExit(classifier)
    with pytest.raises(InputError, match="rounds"):
        EarlyExit(classifier, ExitRule((25,), (1.0,)))
    for changed in ({"tolerance": 1.5}, {"tolerance": "x"}, {"stages": 0}, {"stages": True}):
        with pytest.raises(InputError):
            learn_exit_rule(classifier, images, labels, **changed)
    with pytest.raises(InputError, match="labels"):
        learn_exit_rule(classifier, images, labels[:-1])
    with pytest.raises(InputError, match="path"):
        learn_exit_rule(replace(classifier, path=()), images, labels)
    with pytest.raises(InputError, match="images"):
        EarlyExit(classifier, ExitRule((4,), (1.0,))).predict(images[:, :5])
