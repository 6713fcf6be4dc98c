"""One classifier from several: the mean of their scores."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from visionshare import Network, PatchTemplates, ShareBoost, Templates
from visionshare.classifier import CompactClassifier, averaged
from visionshare.datasets import Preprocessing
from visionshare.errors import InputError
from visionshare.export import compile_classifier
from visionshare.generators.layers import network
from visionshare.learners.fine_tuning import FineTuning, fine_tune


@pytest.fixture(scope="module")
def digits():
    bunch = load_digits()
    return (bunch.images * 15).astype(np.uint8), bunch.target


@pytest.fixture(scope="module")
def members(digits):
    images, y = digits[0][:600], digits[1][:600]
    classifiers = []
    for seed in range(2):
        pool = PatchTemplates(3, 20, grid=3, widths=(2.0,), n_patches=2000, random_state=seed)
        greedy = ShareBoost(rounds=6).fit(pool.fit(images).transform(images), y)
        settings = FineTuning(epochs=1, validation_fraction=0.1, random_state=seed)
        classifiers.append(fine_tune(greedy.to_classifier(pool), images, y, settings))
    return classifiers


def test_scores_are_the_mean(members, digits, tmp_path):
    images, _ = digits
    both = averaged(members)
    expected = np.mean([c.decision_function(images) for c in members], axis=0)
    scores = both.decision_function(images)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert both.temperature == pytest.approx(np.mean([c.temperature for c in members]))
    assert both.macs == sum(c.macs for c in members)
    assert both.n_features == sum(c.n_features for c in members)
    assert both.path[-1].macs == both.macs
    both.save(tmp_path / "both.safetensors")
    again = CompactClassifier.load(tmp_path / "both.safetensors")
    np.testing.assert_array_equal(again.decision_function(images), scores)
    assert again.metadata["members"] == 2


def test_it_is_c_too(members, digits):
    both, images = averaged(members), digits[0][:50]
    expected = both.decision_function(images)
    scores = compile_classifier(both).decision_function(images)
    np.testing.assert_allclose(scores, expected, atol=1e-5 * np.abs(expected).max())


def test_one_is_itself(members):
    assert averaged(members[:1]) is members[0]


def test_what_does_not_fit_is_refused(members, digits):
    one = members[0]
    with pytest.raises(InputError, match=r"^classifiers.*none"):
        averaged([])
    others = CompactClassifier(one.family, one.weights, one.intercept, np.arange(1, 11))
    with pytest.raises(InputError, match=r"^classifiers"):
        averaged([one, others])
    with pytest.raises(InputError, match=r"^classifiers.*preprocessing"):
        averaged([one, replace(members[1], preprocessing=Preprocessing("dark_on_light"))])


def test_networks_among_the_members_keep_their_plans(monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (60, 12, 12), np.uint8)
    members = []
    for seed in range(2):
        family = Network([Templates(4, 3, grid=2, n_patches=300)], random_state=seed).fit(images)
        weights = np.random.default_rng(seed).normal(size=(3, 16)).astype(np.float32)
        members.append(CompactClassifier(family, weights, np.zeros(3), np.arange(3)))
    model = averaged(members)
    before = model.decision_function(images[:1])

    def refused(layers):
        raise AssertionError("planned again")

    monkeypatch.setattr(network, "Forward", refused)
    np.testing.assert_array_equal(model.decision_function(images[:1]), before)
