"""What a search chose, and the temperature of its probabilities."""

import numpy as np

from visionshare.datasets import ImageSet
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.choice import choose
from visionshare.image_classifier.copies import parts_of, taken
from visionshare.image_classifier.proposals import Data
from visionshare.image_classifier.state import SearchSettings
from visionshare.image_classifier.trials import ProposalLearner, Trials


def test_the_temperature_is_of_a_training_as_long_as_the_last(pictures):
    images, names = pictures
    labels = np.unique(names, return_inverse=True)[1]
    training = ImageSet(images, labels, ("lying", "standing"), "bars")
    learner = ProposalLearner(Data.of(training), training)
    choice = choose(learner, Budget(3000), SearchSettings(augment=False))
    parts = parts_of(training, 0)
    learning = taken(training, parts.learning)
    held_out = taken(training, parts.compared)
    own = Data((9, 9, 1), len(learning), 2, learner.data.is_glyphs)
    trials = Trials(ProposalLearner(own, learning), held_out)
    (again,) = trials.run([choice.best.proposal], choice.epochs)
    assert choice.best.temperature == again.temperature
    # What is compared is shorter.
    assert choice.epochs > choice.best.epochs
    assert max(trial.epochs for trial in choice.trials) == choice.best.epochs
