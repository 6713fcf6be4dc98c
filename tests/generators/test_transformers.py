"""Families are transformers of scikit-learn: they stand in pipelines before learners."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from visionshare import Channels, Features, Network, PatchTemplates, Pixels, ShareBoost
from visionshare.errors import InputError


@pytest.fixture(scope="module")
def images_and_y():
    """Images that are lighter above, or below."""
    rng = np.random.default_rng(0)
    images, y = rng.integers(0, 100, (40, 6, 5)).astype(np.uint8), np.arange(40) % 2
    images[y == 0, :3] += 100
    images[y == 1, 3:] += 100
    return images, y


@pytest.mark.parametrize(
    "family",
    [
        Pixels(),
        PatchTemplates(3, 4, 2, (2.0,), n_patches=200),
        Network([Channels(pool=2), Features(Pixels())]),
    ],
    ids=["pixels", "patches", "channels"],
)
def test_pipelines_of_a_family_and_a_learner(family, images_and_y):
    images, y = images_and_y
    model = make_pipeline(family, ShareBoost(rounds=3))
    assert cross_val_score(model, images, y, cv=2, error_score="raise").shape == (2,)
    search = GridSearchCV(model, {"shareboost__rounds": [1, 3]}, cv=2, error_score="raise")
    fitted = search.fit(images, y).best_estimator_
    assert fitted.score(images, y) > 0.7
    names = fitted[:-1].get_feature_names_out()
    assert len(set(names)) == fitted[0].n_features_
    assert names[0] == f"{family.name}0"


def test_names_need_a_fitted_family():
    with pytest.raises(NotFittedError):
        Pixels().get_feature_names_out()


def test_learners_say_what_takes_images(images_and_y):
    with pytest.raises(InputError, match="ImageClassifier"):
        ShareBoost(rounds=3).fit(*images_and_y)
