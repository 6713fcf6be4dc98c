"""What an image counts: weights in greedy choices and in fine-tuning."""

import numpy as np
import pytest

from visionshare import FineTuning, ImageClassifier, fine_tune
from visionshare.datasets import ImageSet
from visionshare.errors import InputError
from visionshare.image_classifier.augmenting import shifted
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.proposals import Data, Proposal, widest
from visionshare.image_classifier.trials import ProposalLearner


@pytest.fixture(scope="module")
def mislabeled(bars):
    """Return images, labels of which a third are wrong, and weights that are 0 there."""
    images, names = bars(90)
    labels = (names == "standing").astype(np.int64)
    wrong = np.arange(90) % 3 == 0
    return images, np.where(wrong, 0, labels), np.where(wrong & (labels == 1), 0.0, 2.0), labels


def test_images_of_weight_zero_teach_nothing(mislabeled):
    images, labels, weights, truth = mislabeled
    model = ImageClassifier("pixels", n_jobs=1, random_state=0)
    plain = model.fit(images, labels).predict(images)
    weighted = model.fit(images, labels, weights).predict(images)
    assert np.mean(weighted != truth) < np.mean(plain != truth)


def test_layers_learn_by_weights_too(mislabeled):
    images, labels, weights, truth = mislabeled
    errors = []
    for counts in (None, weights):
        training = ImageSet(images, labels, ("0", "1"), "bars", weights=counts)
        data = Data.of(training)
        proposal = Proposal(widest(data, Budget(30_000), 1), *shifted(data))
        (learned,) = ProposalLearner(data, training).learned([proposal], 15)
        said = learned.result().predict(images).astype(np.int64)
        errors.append(np.mean(said != truth))
    assert errors[1] < errors[0]


def test_equal_weights_change_nothing(mislabeled):
    images, _, _, truth = mislabeled
    training = ImageSet(images, truth, ("0", "1"), "bars")
    data = Data.of(training)
    proposal = Proposal(widest(data, Budget(30_000), 1))
    (learned,) = ProposalLearner(data, training).learned([proposal], 2)
    before, names = learned.result(), np.array(["0", "1"])[truth]
    settings = FineTuning(epochs=2, head="linear", batch=16)
    plain = fine_tune(before, images, names, settings)
    same = fine_tune(before, images, names, settings, sample_weight=np.full(90, 7.0))
    np.testing.assert_array_equal(plain.weights, same.weights)
    half = np.where(np.arange(90) < 45, 1.0, 3.0)
    parts = [images[:45], images[45:]], [names[:45], names[45:]]
    other = fine_tune(before, *parts, settings, sample_weight=[half[:45], half[45:]])
    assert not np.array_equal(plain.weights, other.weights)


def test_weights_that_say_nothing_are_refused(mislabeled):
    images, labels, weights, _ = mislabeled
    model = ImageClassifier("pixels", n_jobs=1)
    for wrong in (weights[:5], -weights - 1, np.zeros(90), np.full(90, np.nan), ["a"] * 90):
        with pytest.raises(InputError, match="sample_weight: got"):
            model.fit(images, labels, wrong)


def test_parts_of_images_keep_their_weights():
    images = ImageSet(
        np.zeros((4, 3, 3), np.uint8), np.array([0, 1, 2, 1]), ("a", "b", "c"), "four",
        weights=np.arange(4.0),
    )  # fmt: skip
    assert images.subset([3, 0]).weights.tolist() == [3, 0]
    assert images.of_classes(["c", "b"]).weights.tolist() == [1, 2, 3]
