"""The search: stages that each vary one thing of the best proposal so far."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.errors import InputError
from visionshare.image_classifier.proposals import Greedy, Proposal
from visionshare.image_classifier.stages import (
    Stage,
    first_stages,
    last_stages,
    pixels_alone,
)  # fmt: skip
from visionshare.image_classifier.state import StructureSearch
from visionshare.image_classifier.structure import random_structures
from visionshare.image_classifier.trials import Trial, Trials

_logger = logging.getLogger(__name__)

# Random structures in a row of which none is new within the budget, before no more are expected.
_IN_VAIN = 20_000
# More features of a random structure than these take long to choose.
_MOST_FEATURES = 600
# Images that are enough to have the kernels compiled.
_COMPILING = 64


def search(
    state: StructureSearch, beside: Callable[[StructureSearch], Trial | None] | None = None
) -> Trial:
    """Return the best trial."""
    # 1) fewer members where they leave too little for each; how long does an epoch take?
    _share_budget(state)
    if beside is not None:
        state.reserve()
    if state.settings.seconds is not None or state.budget.microseconds is not None:
        _measure_pace(state)
    # 2) structure, augmentation and head; templates need patches with contrast, pixels do not
    last = last_stages(state)
    _run_stages(state, first_stages(state), last)
    if state.best is None and isinstance(state.problem, InputError):
        _run_stages(state, [(pixels_alone, 0.0)])
    # 3) augmentations in long trainings, members, and pools
    _compare_augmentations(state)
    _run_stages(state, last)
    if state.best is None:
        raise _failure(state)
    # 4) features of a pretrained network
    if beside is not None:
        state.reserved = 0.0
        found = beside(state)
        if found is not None:
            return found
    # 5) what is left of the time
    if state.has_time():
        _try_random_structures(state)
    else:
        _take_several_members(state)
    return state.best


def _share_budget(state: StructureSearch) -> None:
    """Leave one member, where no structure fits into the part of each of several."""
    if state.members > 1 and not any(state.widest(depth) for depth in (2, 1, 0)):
        state.members = 1


def _measure_pace(state: StructureSearch) -> None:
    """Learn how long an epoch takes, and what the machine computes in a microsecond."""
    stage, _ = first_stages(state)[0]
    first = next(iter(stage(state)), None)
    if first is None or first.structure is None:
        return
    trials = state.trials
    # 1) compile the kernels; the time limit does not count this, which happens once per machine
    with warnings.catch_warnings():
        # Warnings about so few images would mislead.
        warnings.simplefilter("ignore")
        compiled = trials.fewer(_COMPILING).learn(first, 1)
    settings = replace(state.settings, begun=state.settings.begun + compiled.seconds)
    state.settings = settings
    # 2) an epoch
    learned = trials.learn(first, 1)
    if learned.classifier is None:
        # The stages find out what can be learned from such images.
        return
    state.budget = state.budget.at_the_rate_of(learned.classifier, trials.learner.images.images)
    _share_budget(state)
    if settings.seconds is not None:
        per_epoch = max(learned.seconds - learned.choosing, 1e-6)
        affordable = settings.left / 2 / settings.trials_in_time / per_epoch
        state.epochs = int(np.clip(affordable, 1, state.epochs))


def _run_stages(
    state: StructureSearch,
    stages: Sequence[tuple[Stage, float]],
    afterwards: Sequence[tuple[Stage, float]] = (),
) -> None:
    """Try what each stage proposes; what is better becomes the best."""
    for number, (stage, margin) in enumerate(stages):
        proposals = list(stage(state))
        state.waiting = len(proposals)
        state.later = [later for later, _ in (*stages[number + 1 :], *afterwards)]
        # On a cluster the proposals of a stage are tried at the same time.
        n = 1 if state.settings.client is None else len(proposals)
        for first in range(0, len(proposals), max(1, n)):
            if state.best is not None and not state.has_time():
                return
            for trial in _tried(state, proposals[first : first + n]):
                _take_if_better(state, trial, margin)


def _take_if_better(state: StructureSearch, trial: Trial, margin: float) -> None:
    if state.best is None or trial.is_better(state.best, margin):
        state.best = trial


def _tried(
    state: StructureSearch,
    proposals: Sequence[Proposal],
    trials: Trials | None = None,
    epochs: int | None = None,
) -> Iterator[Trial]:
    """Yield the trials of proposals that can be learned and keep within the budget."""
    trials = trials or state.trials
    images = trials.held_out.images
    for proposal, trial in zip(
        proposals, trials.run(proposals, epochs or state.epochs), strict=True
    ):
        if not isinstance(trial, Trial):
            if isinstance(trial, InputError) and state.settings.features != "auto":
                raise trial
            _logger.info("%s: %s", proposal, trial)
            state.problem = trial
        elif isinstance(proposal.features, Greedy):
            found = _best_rounds(state, trial) or replace(trial, allowed=False)
        else:
            found = replace(trial, allowed=state.budget.allows(trial.classifier, images))
        if isinstance(trial, Trial):
            state.note(found)
            if found.allowed:
                yield found
            state.tell()


def _best_rounds(state: StructureSearch, trial: Trial) -> Trial | None:
    """Return the rounds of a greedy search that held-out images and the budget ask for."""
    # The classifier of fewer rounds is a part of the one of more.
    features = trial.proposal.features
    assert isinstance(features, Greedy)
    most = state.budget.rounds(trial.classifier, state.trials.held_out.images)
    if most == 0:
        return None
    fewer = [rounds for rounds in state.settings.compared_rounds if rounds < most]
    best: Trial | None = None
    for rounds in (*fewer, most):
        proposal = Proposal(replace(features, rounds=rounds))
        found = state.trials.measure(proposal, trial.classifier.at(rounds))
        if best is None or found.doubt < best.doubt:
            best = replace(found, epochs=trial.epochs, seconds=trial.seconds)
    return best


def _compare_augmentations(state: StructureSearch) -> None:
    """Compare augmentations that are about as good in trainings as long as the last one."""
    # What augmentation is worth depends on the number of images and of epochs.
    best = state.best
    settings = state.settings
    if best is None or best.proposal.structure is None:
        return
    candidates = augmentation_candidates(state.done, best.proposal, settings.close)
    epochs = state.data.epochs
    times = state.longer.n / state.trials.n
    seconds = best.seconds * times * epochs / state.epochs * len(candidates)
    if times < settings.many or len(candidates) == 1 or not state.has_time(seconds):
        return
    tried = _tried(state, candidates, state.longer, epochs)
    chosen = min(tried, key=lambda trial: trial.doubt, default=best).proposal
    if chosen != best.proposal:
        # Later stages compare with a trial of their own length.
        for trial in _tried(state, [chosen]):
            state.best = trial


def augmentation_candidates(
    trials: Sequence[Trial], best: Proposal, close: float
) -> list[Proposal]:
    """Return a proposal with its own augmentation, and with those that were about as good."""
    first = _without_augmentation(trials[0])
    same = [trial for trial in trials if _without_augmentation(trial) == first]
    own = next((t for t in same if t.proposal.augmentation == best.augmentation), None)
    found = [best]
    if own is None:
        return found
    for trial in same:
        behind = trial.doubts - own.doubts
        error = float(behind.std()) / np.sqrt(len(behind))
        if trial is not own and float(behind.mean()) < close * error:
            given = trial.proposal
            found.append(replace(best, augmentation=given.augmentation, words=given.words))
    return found


def _without_augmentation(trial: Trial) -> Proposal:
    return replace(trial.proposal, augmentation=None, words="")


def _failure(state: StructureSearch) -> Exception:
    """Return why there is no best trial."""
    if state.problem is not None and not state.done:
        return state.problem
    accepted = "a larger one: no proposal keeps within it"
    if state.done:
        least = min((_least(trial) for trial in state.done), key=lambda model: model.macs)
        accepted += (
            f"; the cheapest that was tried costs {least.macs:,} multiply-accumulates and "
            f"{least.nbytes:,} bytes"
        )
    return InputError("budget", str(state.budget), accepted)


def _least(trial: Trial) -> CompactClassifier:
    """Return the smallest classifier of a trial: that of the first round of a greedy search."""
    greedy = isinstance(trial.proposal.features, Greedy)
    return trial.classifier.at(1) if greedy else trial.classifier


def _take_several_members(state: StructureSearch) -> None:
    """Take the best trial as one of several members, if there was no time to try that."""
    best = state.best
    n = state.members
    assert best is not None
    if n == 1 or best.proposal.structure is None:
        return
    if any(trial.proposal.members > 1 for trial in state.done):
        return
    several = replace(best.proposal, members=n)
    state.best = replace(
        best, proposal=several, seconds=best.seconds * n, choosing=best.choosing * n
    )


def _try_random_structures(state: StructureSearch) -> None:
    """Try structures at random while there is time, with a third of the epochs at first."""
    if state.settings.seconds is None or state.structure is None:
        return
    short = max(1, state.epochs // 3)
    for proposal in _random_proposals(state):
        if not state.has_time():
            return
        for first in list(_tried(state, [proposal], epochs=short)):
            doubts = sorted(trial.doubt for trial in state.done if trial.epochs == short)
            is_promising = first.doubt <= doubts[len(doubts) // 3]
            if is_promising and state.has_time():
                for trial in _tried(state, [proposal]):
                    _take_if_better(state, trial, state.settings.likely)


def _random_proposals(state: StructureSearch) -> Iterator[Proposal]:
    """Yield the best proposal with other structures that use the budget."""
    best = state.proposal
    data = state.data
    assert best.structure is not None
    seen = set()
    in_vain = 0
    drawn = random_structures(
        state.trials.learner.seed, best.structure.deslanted, best.structure.channels
    )
    while in_vain < _IN_VAIN:
        structure = next(drawn)
        in_vain += 1
        if structure in seen or structure.n_features > _MOST_FEATURES:
            continue
        if not structure.fits(data.raster):
            continue
        use = state.budget.use(structure, data.raster, data.n_classes, best.bits, best.members)
        if state.settings.least_use <= use <= 1:
            seen.add(structure)
            in_vain = 0
            yield replace(best, features=structure)
