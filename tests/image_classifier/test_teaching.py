"""Teachers of images in memory."""

from dataclasses import replace

import numpy as np
import pytest

from visionshare import ImageClassifier
from visionshare.datasets import ImageSet
from visionshare.datasets.intake import Intake
from visionshare.errors import InputError, VisionshareError
from visionshare.generators.pretrained.efficientnet import is_installed
from visionshare.image_classifier.proposals import Data, Proposal
from visionshare.image_classifier.structure import Structure
from visionshare.image_classifier.teaching import taught_learner, without_copies_of_others
from visionshare.image_classifier.trials import ProposalLearner, Trials
from visionshare.recipes.schema import TeacherPart

PROPOSAL = Proposal(Structure((), 3, 8, 2), members=2)


@pytest.fixture
def learner(pictures):
    images, y = pictures
    labels = (y == "standing").astype(np.int64)
    training = ImageSet(images, labels, ("lying", "standing"), "bars")
    return ProposalLearner(Data.of(training), training)


def learned(learner, **changes):
    (found,) = replace(learner, **changes).learned([PROPOSAL], 2)
    return found.result()


def test_members_share_a_teacher_who_labels_more_images(learner, bars):
    part = TeacherPart(source="self", members=1)
    more, _ = bars(40, seed=1)
    unlabeled = ImageSet(more, np.zeros(40, np.int64), learner.images.classes, "more")
    alone = learned(learner)
    taught = learned(learner, teacher=part)
    both = learned(learner, teacher=part, unlabeled=unlabeled)
    weights = [model.weights for model in (alone, taught, both)]
    assert not np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[1], weights[2])
    assert alone.macs == taught.macs == both.macs
    assert learner.recipe(PROPOSAL, 2).teacher is None


def test_trials_of_fewer_images_learn_from_fewer_without_a_class(learner, bars):
    more, _ = bars(50, seed=1)
    unlabeled = ImageSet(more, np.zeros(50, np.int64), learner.images.classes, "more")
    part = TeacherPart(source="self")
    trials = Trials(learner, learner.images).taught(part, unlabeled)
    assert trials.learner.counted.n == 110
    assert trials.fewer(100) is trials
    assert trials.fewer(20).learner.counted.n == 40
    assert trials.fewer(56).learner.counted.n == 106


def test_a_file_teaches_and_is_named_in_the_recipe(tmp_path, fitted, pictures, bars):
    images, y = pictures
    fitted.save(tmp_path / "teacher.safetensors")
    few = {"budget": 2500, "size": 9, "augment": False, "n_jobs": 1}
    model = ImageClassifier(teacher=tmp_path / "teacher.safetensors", **few)
    model.fit(images, y, unlabeled=bars(30, seed=2)[0])
    assert model.score(*bars(40, seed=3)) > 0.8
    assert "[teacher]" in model.recipe_
    with pytest.raises(InputError, match=r"teacher: got .*classes 'lying', 'standing'"):
        model.fit(images, np.where(y == "lying", "left", "right"))


@pytest.mark.parametrize(
    ("options", "unlabeled", "said"),
    [
        ({"teacher": "gone.safetensors"}, None, "teacher: got 'gone.safetensors'"),
        ({"teacher": 3}, None, "teacher: got 3"),
        ({"teacher": "self", "features": "channels"}, None, "teacher"),
        ({}, np.zeros((2, 9, 9), np.uint8), "unlabeled"),
        ({"teacher": "self"}, np.zeros((0, 9, 9), np.uint8), "unlabeled|images"),
    ],
)
def test_what_cannot_teach_is_refused_before_work_starts(options, unlabeled, said, pictures):
    with pytest.raises(VisionshareError, match=said):
        ImageClassifier(**options).fit(*pictures, unlabeled=unlabeled)


def test_a_pretrained_network_says_what_copies_show_that_are_not_held_out():
    if not is_installed():
        pytest.skip("the extra [pretrained] is not installed")
    rng = np.random.default_rng(0)
    images = rng.integers(0, 60, (16, 12, 12, 3)).astype(np.uint8)
    labels = np.arange(16) % 2
    images[labels == 1, :, :, 0] += 180
    training = ImageSet(images, labels, ("blue", "red"), "colors")
    learner = ProposalLearner(Data.of(training), training)
    part = TeacherPart(source="pretrained", copies=2)
    intake = Intake((12, 12), 3)
    taught = taught_learner(
        replace(learner, teacher=part), intake, images, images[:3], ["blue", "red"]
    )
    assert taught.images.taught.shape == (16, 2)
    assert (taught.images.taught.argmax(axis=1) == labels).all()
    assert len(taught.unlabeled) == 2 * 16 + 3
    assert (taught.unlabeled.labels[:32] == np.tile(labels, 2)).all()
    rows = np.array([1, 4])
    kept = without_copies_of_others(taught, rows)
    expected = taught.unlabeled.images[[1, 4, 17, 20, 32, 33, 34]]
    np.testing.assert_array_equal(kept.images, expected)
