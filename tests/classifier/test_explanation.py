"""Explanations add up to scores, and say what a classifier's numbers say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.generators.examples import family_examples
from visionshare import CompactClassifier, Features, Network, PatchTemplates, Pixels, Units
from visionshare.classifier import explain
from visionshare.errors import InputError
from visionshare.generators import family_names
from visionshare.scores import softmax

rng = np.random.default_rng(0)
IMAGES = rng.integers(0, 256, (40, 8, 8), np.uint8)
EXAMPLES = {label: make for name in family_names() for label, make in family_examples(name).items()}


def _classifier(family, k=3):
    weights, intercept = rng.normal(size=(k, family.n_features_)), rng.normal(size=k)
    classes = np.array(["ant", "bee", "cat", "dog"][:k])
    return CompactClassifier(family, weights, intercept, classes, temperature=2.0)


@pytest.mark.parametrize("label", EXAMPLES)
def test_contributions_and_intercept_are_the_score(label):
    model = _classifier(EXAMPLES[label]().fit(IMAGES))
    for image in IMAGES[:2]:
        said = explain(model, image)
        scores = model.decision_function(image)[0]
        slack = 1e-4 * (1 + np.abs(said.contributions).sum(axis=1).max())
        assert_allclose(said.contributions.sum(axis=1) + said.base, scores, atol=slack)
        assert_allclose(said.scores, scores)
        evidence = said.evidence.sum(axis=1) + said.base_evidence
        assert_allclose(evidence, scores - scores.mean(), atol=slack)
        assert_allclose(softmax(evidence[None], 2.0)[0], said.probabilities, atol=1e-4 + slack)
        assert said.label == model.predict(image[None])[0]


def test_the_map_is_the_evidence_of_what_is_somewhere():
    family = PatchTemplates(3, 6, 2, (2.0,), n_patches=500).fit(IMAGES)
    model = _classifier(family)
    said = explain(model, IMAGES[0])
    expected = np.zeros((8, 8))
    for j, (top, bottom, left, right) in enumerate(said.boxes.astype(int)):
        if (bottom - top) * (right - left) < 64:
            amount = said.evidence[1, j] / ((bottom - top) * (right - left))
            expected[top:bottom, left:right] += amount
    assert_allclose(said.evidence_map(1), expected, atol=1e-9)
    assert_allclose(said.evidence_map(1).sum(), said.evidence[1][~said.everywhere].sum())
    larger = said.scaled((16, 24))
    assert larger.size == (16, 24)
    assert_allclose(larger.boxes, said.boxes * [2, 2, 3, 3])
    assert_allclose(larger.evidence_map(1).sum(), said.evidence_map(1).sum())


def test_the_strongest_are_those_that_tell_classes_apart():
    model = CompactClassifier(
        Pixels().fit(np.zeros((1, 1, 3))),
        np.array([[9.0, 1.0, -2.0], [9.0, -1.0, 1.0]]),
        np.zeros(2),
        np.array([4, 5]),
    )
    said = explain(model, np.ones((1, 3)))
    # The first adds as much to both classes: it says nothing.
    assert said.top_features(said.class_index()).tolist() == [2, 1]
    assert said.top_features(said.class_index(4), 1).tolist() == [2]
    assert said.label == 5
    assert said.class_index("4") == 0


def test_units_are_explained_by_what_they_see():
    family = Network([Features(PatchTemplates(3, 6, 2, (2.0,), n_patches=500)), Units(5)]).fit(
        IMAGES
    )
    said = explain(_classifier(family), IMAGES[0])
    assert set(said.families) == {"patches"}
    assert said.numbers.tolist() == list(range(1, 25))
    assert not said.everywhere.all()


def test_vectors_are_explained_too():
    model = _classifier(Pixels().fit(np.zeros((1, 5))), 2)
    said = explain(model, np.arange(5.0))
    assert said.size == (1, 5)
    assert said.evidence_map(0).shape == (1, 5)


def test_what_is_wrong_is_named():
    model = _classifier(Pixels().fit(IMAGES))
    with pytest.raises(InputError, match=r"^image: got \(7, 8\)"):
        explain(model, IMAGES[0, 1:])
    with pytest.raises(
        InputError, match=r"^class: got 'eel'; accepted: one of 'ant', 'bee', 'cat'"
    ):
        explain(model, IMAGES[0]).class_index("eel")
