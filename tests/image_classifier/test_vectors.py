"""Two-dimensional arrays are vectors: all that scikit-learn asks of a classifier of them."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from visionshare import ImageClassifier
from visionshare.errors import InputError


def test_vectors():
    X, y = load_iris(return_X_y=True)
    model = ImageClassifier(n_jobs=1).fit(X[::2], y[::2])
    assert model.n_features_in_ == 4
    assert model.score(X[1::2], y[1::2]) > 0.85
    with pytest.raises(ValueError, match="features"):
        model.predict(np.zeros((2, 5)))


def test_a_classifier_of_images_has_no_number_of_features_in(pictures):
    model = ImageClassifier("pixels", n_jobs=1).fit(*pictures)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(InputError, match="images"):
        model.predict(np.zeros((2, 81)))


# Images are held out, and probabilities calibrated, without weights.
UNWEIGHTED = {"check_sample_weight_equivalence_on_dense_data": "trials count images alike"}


@parametrize_with_checks(
    [ImageClassifier("pixels", n_jobs=1)], expected_failed_checks=lambda _: UNWEIGHTED
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_names_of_columns_go_with_the_vectors(pictures):
    import pandas as pd

    images, y = pictures
    table = pd.DataFrame(images.reshape(len(images), -1)[:, :6], columns=list("abcdef"))
    model = ImageClassifier(budget=3000, n_jobs=1).fit(table, y)
    assert model.n_features_in_ == len(model.feature_names_in_) == 6
    model.set_params(features="pixels", size=9).fit(images, y)
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "n_features_in_")
