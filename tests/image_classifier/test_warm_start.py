"""A second fit that learns on: structure and features stay, images and classes join."""

from dataclasses import replace

import numpy as np
import pytest

from visionshare import ImageClassifier, Pixels
from visionshare.datasets import ImageSet
from visionshare.datasets.training_values import TrainingValues
from visionshare.errors import InputError
from visionshare.image_classifier.augmenting import shifted
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.proposals import Data, Proposal, widest
from visionshare.image_classifier.trials import ProposalLearner


def _leaning(n, seed=1):
    """Return images of bars that lean: a third class beside those that lie and stand."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 60, (n, 9, 9)).astype(np.uint8)
    for image in images:
        for row in range(9):
            start = min(max(0, row + rng.integers(-1, 1)), 7)
            image[row, start : start + 2] = rng.integers(180, 256)
    return images, np.full(n, "leaning")


@pytest.fixture(scope="module")
def model(bars):
    """Return an estimator whose classifier has layers, without the seconds of a search."""
    images, names = bars(80)
    labels = (names == "standing").astype(np.int64)
    training = ImageSet(images, labels, ("0", "1"), "bars")
    data = Data.of(training)
    proposal = Proposal(widest(data, Budget(30_000), 1), *shifted(data), members=2)
    (learned,) = ProposalLearner(data, training).learned([proposal], 20)
    model = ImageClassifier(n_jobs=1, warm_start=True)
    values = TrainingValues()
    model.classifier_ = replace(learned.result(), classes=np.unique(names), values=values)
    model.classes_, model.image_shape_ = np.unique(names), (9, 9)
    model.search_results_ = {}
    return model


def _again(model):
    """Return an estimator that was fitted as another one was."""
    again = ImageClassifier(**model.get_params())
    vars(again).update(vars(model))
    return again


def test_a_new_class_joins_and_nothing_is_forgotten(model, bars):
    more = [np.concatenate(pair) for pair in zip(bars(80), _leaning(40), strict=True)]
    on = _again(model).fit(*more)
    assert on.classes_.tolist() == ["leaning", "lying", "standing"]
    assert type(on.classifier_.family) is type(model.classifier_.family)
    assert on.classifier_.n_features == model.classifier_.n_features
    assert on.image_shape_ == model.image_shape_
    # No search was made.
    assert on.search_results_ == model.search_results_
    assert np.isnan(on.validation_error_)
    for images, names in (bars(60, seed=5), _leaning(30, seed=6)):
        assert on.score(images, names) > 0.7
    np.testing.assert_array_equal(on.predict(more[0]), _again(model).fit(*more).predict(more[0]))


def test_without_warm_start_a_fit_begins_anew(bars):
    model = ImageClassifier("pixels", n_jobs=1, warm_start=True).fit(*bars(40))
    model.set_params(warm_start=False).fit(*bars(60))
    assert not np.isnan(model.validation_error_)


def test_chosen_features_of_a_pool_stay_and_their_weights_are_solved_again(bars):
    images, names = bars(60)
    labels = np.where(names == "lying", 3, 7)
    first = ImageClassifier("pixels", budget=60, n_jobs=1, warm_start=True)
    first.fit(images[:50], labels[:50])
    before = first.classifier_
    first.fit(images, labels)
    after = first.classifier_
    assert after.classes.tolist() == [3, 7]
    np.testing.assert_array_equal(
        np.sort(after.family.transform(images), axis=1),
        np.sort(before.family.transform(images), axis=1),
    )


def test_what_cannot_learn_on_is_refused(model, bars):
    images, names = bars(40)
    with pytest.raises(InputError, match="warm_start: got 'yes'"):
        ImageClassifier(warm_start="yes").fit(images, names)
    with pytest.raises(InputError, match="teacher: got 'self'"):
        _again(model).set_params(teacher="self").fit(images, names)
    unnamed = ImageClassifier(Pixels(), n_jobs=1, warm_start=True).fit(images, names)
    with pytest.raises(InputError, match="features that no recipe names"):
        unnamed.fit(images, names)
    with pytest.raises(InputError, match=r"images: got \(81,\); accepted: \(9, 9\)"):
        ImageClassifier("pixels", n_jobs=1, warm_start=True).fit(images, names).fit(
            images.reshape(40, 81), names
        )
