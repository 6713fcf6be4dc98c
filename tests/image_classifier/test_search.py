"""Stages of a search, and augmentations that are compared once more."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from visionshare.datasets import ImageSet
from visionshare.errors import InputError
from visionshare.image_classifier.augmenting import deformed, mirrored, shifted
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.choice import choose
from visionshare.image_classifier.proposals import Data, Proposal, widest
from visionshare.image_classifier.search import augmentation_candidates
from visionshare.image_classifier.state import SearchSettings, StructureSearch
from visionshare.image_classifier.trials import ProposalLearner, Trial, table

DATA = Data((28, 28, 1), 100, 10, False)
NARROW, WIDE = (widest(DATA, Budget(n), 2) for n in (100_000, 200_000))


def _trial(augmentation, doubts, features=NARROW):
    made, words = augmentation
    return Trial(Proposal(features, made, words), 0.0, doubts, 1.0, None, epochs=10, seconds=1.0)


def test_augmentations_that_are_clearly_worse_are_not_compared_again():
    rng = np.random.default_rng(0)
    own = rng.random(400)
    level, worse = own + rng.normal(0, 0.1, 400), own + 0.05 + rng.normal(0, 0.1, 400)
    trials = [
        _trial(shifted(DATA), own),
        _trial(deformed(DATA), level),
        _trial((None, "no copies"), worse),
        _trial(mirrored(None, ""), level, WIDE),
    ]
    smoothed = replace(trials[0].proposal, smoothing=0.1)
    trials.append(replace(trials[0], proposal=smoothed))
    best = replace(smoothed, features=WIDE, members=2)
    found = augmentation_candidates(trials, best, 2.0)
    assert [one.words for one in found] == ["shifts", "deformations"]
    assert found[0] == best
    assert found[1] == replace(best, augmentation=deformed(DATA)[0], words="deformations")


def test_an_augmentation_that_no_trial_of_the_first_structure_had_stands_alone():
    trials = [_trial(shifted(DATA), np.zeros(9))]
    best = Proposal(NARROW, deformed(DATA)[0], "deformations")
    assert augmentation_candidates(trials, best, 2.0) == [best]


# Fewer images than there are, and all augmentations count as close.
FEW = SearchSettings(n_learning=40, close=1e9)


def _learner(bars, n, **options):
    images, names = bars(n, **options)
    labels = np.unique(names, return_inverse=True)[1]
    training = ImageSet(images, labels, ("lying", "standing"), "bars")
    return ProposalLearner(Data.of(training), training)


class _Timed(ProposalLearner):
    """Learns for one epoch; its clock counts a second for each 100 images of all epochs."""

    spent: ClassVar[list[float]] = [0.0]
    # Seconds that kernels still take to compile.
    compiling: ClassVar[list[float]] = [0.0]

    def member(self, proposal, epochs, number):
        seconds = epochs * len(self.images) / 100 + self.compiling[0]
        self.compiling[0] = 0.0
        self.spent[0] += seconds
        return super().member(proposal, 1, number)._replace(seconds=seconds, choosing=0.0)


@pytest.fixture(scope="module")
def many(bars):
    plain = _learner(bars, 200)
    return _Timed(plain.data, plain.images)


def test_augmentations_are_compared_in_trainings_as_long_as_the_last(many):
    choice = choose(many, Budget(3000), FEW)
    long = [trial for trial in choice.trials if trial.epochs == choice.epochs]
    words = {trial.proposal.words for trial in long}
    assert len(long) == len(words) >= 3
    assert {trial.proposal.structure for trial in long} == {long[0].proposal.structure}
    best = min(long, key=lambda trial: trial.doubt)
    assert choice.best.proposal.words == best.proposal.words
    assert choice.best.epochs < choice.epochs
    found = table(choice.trials, choice.best.proposal)
    assert found["proposal"][0] == str(choice.best.proposal)
    assert sorted(found["proposal"]) == sorted(str(trial.proposal) for trial in choice.trials)


def test_where_time_is_short_augmentations_are_not_compared_again(many, monkeypatch):
    monkeypatch.setattr(StructureSearch, "has_time", lambda self, seconds=None: seconds is None)
    choice = choose(many, Budget(3000), FEW)
    assert max(trial.epochs for trial in choice.trials) < choice.epochs


def test_variants_are_tried_where_they_are_asked_for(many):
    wanted = ("residual", "strided", "depthwise", "means")
    settings = replace(FEW, close=0.0, variants=wanted, optimizer="muon", n_greedy=0)
    proposals = [trial.proposal for trial in choose(many, Budget(12_000), settings).trials]
    assert {p.structure.variant for p in proposals} == {"", *wanted}
    assert {p.optimizer for p in proposals} == {"muon"}
    assert all(str(p).endswith(", muon") for p in proposals)
    plain = choose(many, Budget(12_000), replace(FEW, close=0.0, n_greedy=0)).trials
    assert {(t.proposal.structure.variant, t.proposal.optimizer) for t in plain} == {("", "adam")}


@pytest.mark.parametrize(
    "bad", [{"variants": "means"}, {"variants": ["wide"]}, {"optimizer": "sgd"}], ids=str
)
def test_settings_that_are_none_are_named(bad):
    with pytest.raises(InputError, match=rf"^{next(iter(bad))}: got"):
        SearchSettings(**bad)


def _choice_in_a_minute(learner, compiling):
    """Return what a minute's search chooses of 200 images, which all and 300 are learned after."""
    _Timed.spent[0] = 0.0
    _Timed.compiling[0] = compiling
    settings = SearchSettings(
        seconds=60.0,
        begun=0.0,
        n_refit=300,
        clock=lambda: _Timed.spent[0],
        augment=False,
        trials_in_time=4,
    )
    return choose(learner, Budget(3000), settings)


@pytest.fixture(scope="module")
def in_a_minute(many):
    """Return what is chosen where nothing has to be compiled, and the seconds that it took."""
    return _choice_in_a_minute(many, compiling=0.0), _Timed.spent[0]


def test_the_seconds_have_room_for_the_training_and_the_refit(many, in_a_minute):
    choice, spent = in_a_minute
    # What comes after the search: all images, and all with the test images once more.
    afterwards = choice.epochs * (200 + 300) / 100
    assert 30 < spent + afterwards <= 60
    assert choice.epochs < many.data.epochs


def test_a_search_is_as_long_where_kernels_have_to_be_compiled(many, in_a_minute):
    compiled, _ = in_a_minute
    first = _choice_in_a_minute(many, compiling=100.0)
    assert [trial.proposal for trial in first.trials] == [t.proposal for t in compiled.trials]
    assert first.epochs == compiled.epochs


def test_where_no_structure_fits_pools_are_tried_after_pixels(bars):
    choice = choose(_learner(bars, 120, side=16), Budget(60), SearchSettings())
    pools = [trial.proposal.features.pool for trial in choice.trials]
    assert pools == ["pixels", "gradient-anchors", "lbp"]
