"""A recipe trained on images in memory is the one that a run trains."""

import numpy as np

from visionshare.datasets import ImageSet, load_images
from visionshare.recipes import load_recipe, train, train_images

FEW = ["learner.rounds=3", "data.limit=150"]


def _few():
    # The images that data.limit draws.
    images = load_images("digits")
    order = np.random.default_rng(0).permutation(len(images))
    return images.subset(np.sort(order[:150]))


def test_images_in_memory_give_the_classifier_of_a_run(tmp_path):
    images = _few()
    recipe = load_recipe("digits", FEW)
    of_run = train(recipe, tmp_path / "run").classifier
    # The recipe prepares pictures; these arrays are prepared already.
    in_memory = train_images(recipe, images, jobs=2)
    assert np.array_equal(
        of_run.decision_function(images.images), in_memory.decision_function(images.images)
    )


def test_copies_that_the_recipe_asks_for_are_made():
    recipe = load_recipe("digits", [*FEW, "deformations.copies=1", "deformations.alpha=0.5"])
    images = _few()
    model = train_images(recipe, images)
    assert model.n_features == 3
    plain = train_images(load_recipe("digits", FEW), images)
    assert not np.array_equal(model.weights, plain.weights)


def test_classes_may_be_rare():
    images = _few()
    rare = np.flatnonzero(images.labels != 0)
    rows = np.sort(np.append(rare, np.flatnonzero(images.labels == 0)[:2]))
    some = ImageSet(images.images[rows], images.labels[rows], images.classes, "rare")
    settings = ["learner.rounds=3", "fine_tuning.epochs=9", "fine_tuning.rate=0.01"]
    settings += ["fine_tuning.batch=16", "fine_tuning.class_weight='balanced'"]
    balanced = train_images(load_recipe("digits", settings), some)
    plain = train_images(load_recipe("digits", settings[:-1]), some)
    named = ["learner.class_weight={'0' = 40}", "fine_tuning.class_weight={'0' = 40}"]
    heavy = train_images(load_recipe("digits", [*settings[:-1], *named]), some)
    zeros = images.images[images.labels == 0]
    share = [model.predict_proba(zeros)[:, 0].mean() for model in (balanced, heavy, plain)]
    assert min(share[:2]) > share[2]
