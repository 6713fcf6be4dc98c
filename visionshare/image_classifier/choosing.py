"""The search: stages that each vary one thing of the best proposal so far."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.datasets import Augmentation
from visionshare.errors import InputError, MemoryLimitError
from visionshare.generators import FeatureFamily
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.image_classifier.augmentation_candidates import augmentation_candidates
from visionshare.image_classifier.augmenting import colored, deformed, mirrored, shifted
from visionshare.image_classifier.budget import Limits
from visionshare.image_classifier.proposals import Data, Greedy, Proposal, structures, widest
from visionshare.image_classifier.trials import Trial, Trials, is_better
from visionshare.recipes.design.proposals import Proposals
from visionshare.recipes.design.settings import Design
from visionshare.recipes.design.structure import Structure

__all__ = ["Options", "Search"]

_logger = logging.getLogger(__name__)

# Images that trials learn from.
_LEARNING = 5000
# With so many times the images of a trial, augmentations are compared once more.
_MANY = 2.0
# More images than these are not what a greedy search over kept columns is best for.
_FEW = 6000
# By how many standard errors of the paired difference a change has to be better.
_LIKELY, _SURE = 0.5, 1.0
# Copies pay off in more epochs than a trial has: images alone have to be better by more.
_PLAIN = 2.0
# Classifiers that share the budget, where several do; trials are of one of them at first.
_MEMBERS = 3
# Trials of a member that a time is divided among.
_TRIALS = 20
_UNITS = 32
_SMOOTHING = 0.1
# Where flash is limited: bits of templates and weights at first, and of templates afterwards.
_BITS, _OTHER_BITS = Bits(4, 4), (2, 8)
# Of a greedy search in a pool that the user names; fewer are compared on its path.
_ROUNDS, _ROUNDS_TRIED = 150, (5, 10, 20, 40, 60, 80, 100, 120)


@dataclass(frozen=True)
class Options:
    """What the user says of the search."""

    features: str | FeatureFamily = "auto"
    augment: str | bool | Augmentation = "auto"
    seconds: float | None = None
    begun: float = field(default_factory=time.perf_counter)
    tried: Callable[[Trial], None] | None = None

    @property
    def left(self) -> float:
        """Seconds that are left, infinitely many without a limit."""
        if self.seconds is None:
            return np.inf
        return self.seconds - (time.perf_counter() - self.begun)


class Search:
    """The search for a proposal.

    Parameters
    ----------
    data : Data
        Of all training images.
    trials : Trials
    limits : Limits
    options : Options
    seed : int

    Attributes
    ----------
    done : list of Trial
    trials : Trials
        On a part of the images, where there are many.
    limits : Limits
        Where microseconds are limited, with the multiply-accumulates that they turned out to be.
    members : int
        Members that share the limits, for as long as trials are of one of them.
    """

    def __init__(
        self, data: Data, trials: Trials, limits: Limits, options: Options, seed: int
    ) -> None:
        self.data, self.limits = data, limits
        self._larger, self.trials = trials, trials.fewer(_LEARNING)
        self._options, self._seed = options, seed
        self._epochs = max(8, self.trials.data.epochs // 3)
        self.done: list[Trial] = []
        self._problem: InputError | MemoryLimitError | None = None
        self._bits = None if limits.flash is None else _BITS
        # Means of several classifiers have floats.
        several = options.features == "auto" and limits.flash is None
        self.members = _MEMBERS if several and trials.learning.images.ndim > 2 else 1

    def run(self) -> Trial:
        """Return the best trial.

        Raises
        ------
        InputError
            If nothing keeps within the limits.
        MemoryLimitError
            If there is no room for any trial.
        """
        if self._options.seconds is not None or self.limits.microseconds is not None:
            self._pilot()
        best = self._through(self._stages(), None)
        if best is None and isinstance(self._problem, InputError):
            # Templates need patches with contrast; pictures of plain colors have none.
            best = self._through([(0.0, self._plain_colors)], None)
        best = None if best is None else self._augmented_longer(best)
        best = self._through(self._last_stages(), best)
        if best is None and self._problem is not None and not self.done:
            raise self._problem
        if best is None:
            accepted = "a larger one: no proposal keeps within it"
            if self.done:
                least = min(map(_least, self.done), key=lambda classifier: classifier.macs)
                accepted += (
                    f"; the cheapest that was tried costs {least.macs:,} multiply-accumulates and "
                    f"{least.nbytes:,} bytes"
                )
            raise InputError("budget", str(self.limits), accepted)
        return self._more(best) if self._has_time() else self._of_several(best)

    def _through(self, stages: list[tuple[float, Any]], best: Trial | None) -> Trial | None:
        """Return the best trial after stages, or of those there was time for."""
        for margin, stage in stages:
            for proposal in stage(best):
                if best is not None and not self._has_time():
                    return best
                trial = self._try(proposal)
                if trial is not None and (best is None or is_better(trial, best, margin)):
                    best = trial
        return best

    def _augmented_longer(self, best: Trial) -> Trial:
        """Return the best trial with the best augmentation for a training of full length."""
        # What augmentation is worth depends on the number of images and of epochs.
        if best.proposal.structure is None:
            return best
        candidates = augmentation_candidates(self.done, best.proposal)
        larger, epochs = self._larger, self.data.epochs
        times = len(larger.learning) / len(self.trials.learning)
        seconds = best.seconds * times * epochs / self._epochs * len(candidates)
        if times < _MANY or len(candidates) == 1 or not self._has_time(seconds):
            return best
        found = [self._try(one, larger, epochs) for one in candidates]
        tried = [trial for trial in found if trial is not None]
        chosen = min(tried, key=lambda trial: trial.doubt, default=best).proposal
        # Later stages compare with a trial of their own length.
        again = None if chosen == best.proposal else self._try(chosen)
        return best if again is None else again

    def _stages(self) -> list[tuple[float, Any]]:
        if not self._searches_structures:
            named = self._options.features != "auto"
            return [(0.0, self._named if named else self._of_vectors)]
        return [
            (0.0, self._first),
            (_PLAIN, self._plain),
            (_SURE, self._mirrored),
            (_LIKELY, self._colored),
            (_LIKELY, self._fronts),
            # Units nearly always help where a training is long, and a trial is short.
            (0.0, self._heads),
            (_LIKELY, self._depths),
            (_LIKELY, self._smoothed),
        ]

    @property
    def _searches_structures(self) -> bool:
        return self._options.features == "auto" and self.trials.learning.images.ndim > 2

    def _last_stages(self) -> list[tuple[float, Any]]:
        if not self._searches_structures:
            return []
        last = self._greedy if self._bits is None else self._few_bits
        return [(0.0, self._several), (_LIKELY, self._fewer), (_LIKELY, last)]

    # ---- what is tried

    def _named(self, _: Trial | None) -> Iterator[Proposal]:
        yield Proposal(Greedy(self._options.features, _ROUNDS))

    def _of_vectors(self, _: Trial | None) -> Iterator[Proposal]:
        p, n = self.data.raster[1], self.trials.data.n
        yield Proposal(Greedy("pixels", min(p, 100)))
        if p <= 64:
            yield Proposal(Greedy("products", 100))
        if n >= 20:
            parameters = {"n_components": min(20, p, n), "n_anchors": min(300, n)}
            yield Proposal(Greedy("rbf", 100, parameters))

    def _first(self, _: Trial | None) -> Iterator[Proposal]:
        found = next(self._structures(), None)
        if found is None and self.members > 1:
            self.members = 1
            found = next(self._structures(), None)
        if found is None:
            yield from self._plain_colors(None)
            return
        for augmentation, words in self._augmentations():
            yield Proposal(found, augmentation, words, self._bits)

    def _plain_colors(self, _: Trial | None) -> Iterator[Proposal]:
        # Whole numbers of few bits are those of templates.
        yield from [] if self._bits is not None else [Proposal(Greedy("pixels", 100))]

    def _structures(self) -> Iterator[Structure]:
        data = self.data
        return structures(data.raster, data.n_classes, self.limits, self._bits, self.members)

    def _augmentations(self) -> list[tuple[Augmentation | None, str]]:
        augment = self._options.augment
        if isinstance(augment, Augmentation):
            return [(augment, "given copies")]
        if augment is False:
            return [(None, "no copies")]
        return [shifted(self.data), deformed(self.data)]

    def _plain(self, best: Trial | None) -> Iterator[Proposal]:
        proposal = self._to_augment(best)
        if proposal is not None and self._options.augment == "auto":
            yield replace(proposal, augmentation=None, words="no copies")

    def _mirrored(self, best: Trial | None) -> Iterator[Proposal]:
        proposal = self._to_augment(best)
        if proposal is not None:
            made, words = mirrored(proposal.augmentation, proposal.words)
            yield replace(proposal, augmentation=made, words=words)

    def _colored(self, best: Trial | None) -> Iterator[Proposal]:
        proposal = self._to_augment(best)
        if proposal is not None and self.data.raster[2] == 3:
            made, words = colored(proposal.augmentation, proposal.words)
            yield replace(proposal, augmentation=made, words=words)

    def _to_augment(self, best: Trial | None) -> Proposal | None:
        """Return the best proposal, where more augmentation may be tried on it."""
        given = isinstance(self._options.augment, Augmentation) or self._options.augment is False
        if best is None or given or best.proposal.structure is None:
            return None
        return best.proposal

    def _fronts(self, best: Trial | None) -> Iterator[Proposal]:
        structure = None if best is None else best.proposal.structure
        if best is None or structure is None:
            return
        fronts: dict[int, tuple[tuple[str, ...], ...]] = {
            1: (("gray", "orientations"),),
            3: (("rgb", "orientations"), ("ycbcr",), ("gray", "orientations"), ("gray",)),
        }
        # Channels have floats.
        for channels in fronts.get(self.data.raster[2], ()) if self._bits is None else ():
            found = self._widest(len(structure.layers), channels=channels)
            if found is not None:
                yield replace(best.proposal, features=found)
        if self.data.is_glyphs:
            found = self._widest(len(structure.layers), deslanted=True)
            if found is not None:
                yield replace(best.proposal, features=found)

    def _heads(self, best: Trial | None) -> Iterator[Proposal]:
        structure = None if best is None else best.proposal.structure
        if best is None or structure is None:
            return
        for head in ("hidden", "low-rank"):
            changes = {"head": head, "n_units": _UNITS, "deslanted": structure.deslanted}
            found = self._widest(len(structure.layers), channels=structure.channels, **changes)
            if found is not None:
                yield replace(best.proposal, features=found)

    def _depths(self, best: Trial | None) -> Iterator[Proposal]:
        structure = None if best is None else best.proposal.structure
        if best is None or structure is None or not structure.layers:
            return
        found = self._widest(len(structure.layers) - 1, **_all_but_width(structure))
        if found is not None:
            yield replace(best.proposal, features=found)

    def _smoothed(self, best: Trial | None) -> Iterator[Proposal]:
        if best is not None and best.proposal.structure is not None and self._bits is None:
            yield replace(best.proposal, smoothing=_SMOOTHING)

    def _several(self, best: Trial | None) -> Iterator[Proposal]:
        if best is not None and best.proposal.structure is not None and self.members > 1:
            yield replace(best.proposal, members=self.members)

    def _fewer(self, best: Trial | None) -> Iterator[Proposal]:
        structure = None if best is None else best.proposal.structure
        if best is None or structure is None:
            return
        for members in range(self.members - 1, 0, -1):
            same = _all_but_width(structure)
            found = self._widest(len(structure.layers), members=members, **same)
            if found is not None and found != structure:
                yield replace(best.proposal, features=found, members=members)

    def _of_several(self, best: Trial) -> Trial:
        """Return a trial of one member as one of several, which there was no time to try."""
        if best.proposal.structure is None or self.members == 1 or best.proposal.members > 1:
            return best
        if any(trial.proposal.members > 1 for trial in self.done):
            return best
        several = replace(best.proposal, members=self.members)
        n = self.members
        return replace(best, proposal=several, seconds=best.seconds * n, choosing=best.choosing * n)

    def _few_bits(self, best: Trial | None) -> Iterator[Proposal]:
        structure = None if best is None else best.proposal.structure
        if best is None or structure is None:
            return
        for templates in _OTHER_BITS:
            bits = Bits(templates, _BITS.weights)
            same = _all_but_width(structure)
            found = self._widest(len(structure.layers), bits=bits, **same)
            # Fewer bits are there for more templates.
            if found is not None and (templates == 8 or found != structure):
                yield replace(best.proposal, features=found, bits=bits)

    def _greedy(self, _: Trial | None) -> Iterator[Proposal]:
        side, n = min(self.data.raster[:2]), self.trials.data.n
        if self.data.n > _FEW or self.data.raster[2] not in (1, 3):
            return
        if side >= 8:
            anchors = {"n_anchors": min(400, n), "n_components": min(60, n, 2 * side)}
            layers = {"channels-1": {"pool": 4 if side >= 16 else 2}, "rbf": anchors}
            yield Proposal(Greedy("gradient-anchors", 150, layers))
        if side >= 16:
            yield Proposal(Greedy("lbp", 60, {"codes": "uniform", "grid": 2}))

    def _widest(self, depth: int, **options: Any) -> Structure | None:
        given = {"bits": self._bits, "members": self.members, **options}
        return widest(self.data.raster, self.data.n_classes, self.limits, depth, **given)

    # ---- how it is tried

    def _pilot(self) -> None:
        """Learn how long an epoch takes, and what the machine computes in a microsecond."""
        first = next(iter(self._first(None)))
        if self._options.features != "auto" or first.structure is None:
            return
        try:
            self.trials.train(first, 1)
        except InputError:
            # The stages find out what can be learned from such images.
            return
        begun = time.perf_counter()
        classifier = self.trials.train(first, 1)
        per_epoch = time.perf_counter() - begun
        self.limits = self.limits.at_the_rate_of(classifier, self.trials.learning.images)
        if self._options.seconds is not None:
            affordable = self._options.left / 2 / _TRIALS / max(per_epoch, 1e-6)
            self._epochs = int(np.clip(affordable, 1, self._epochs))

    def _has_time(self, seconds: float | None = None) -> bool:
        """Return whether there are so many seconds, or those of a trial, to search with."""
        if self._options.seconds is None:
            return True
        if seconds is None:
            seconds = max(trial.seconds for trial in self.done if trial.epochs <= self._epochs)
        return self._options.left - seconds > self._options.seconds / 2

    def _try(
        self, proposal: Proposal, trials: Trials | None = None, epochs: int | None = None
    ) -> Trial | None:
        """Return a proposal's trial; None where it breaks a limit, or its templates see nothing."""
        images = self.trials.held_out.images
        try:
            trial = (trials or self.trials).run(proposal, epochs or self._epochs)
        except (InputError, MemoryLimitError) as error:
            if isinstance(error, InputError) and self._options.features != "auto":
                raise
            _logger.info("%s: %s", proposal, error)
            self._problem = error
            return None
        if isinstance(proposal.features, Greedy):
            found = self._best_rounds(trial)
            self._note(replace(trial, allowed=False) if found is None else found)
            return found
        trial = replace(trial, allowed=self.limits.allow(trial.classifier, images))
        self._note(trial)
        return trial if trial.allowed else None

    def _note(self, trial: Trial) -> None:
        """Keep a trial, and tell of it."""
        self.done.append(trial)
        if self._options.tried is not None:
            self._options.tried(trial)

    def _best_rounds(self, trial: Trial) -> Trial | None:
        """Return the rounds of a greedy search that held-out images and limits ask for."""
        # The classifier of fewer rounds is a part of the one of more.
        whole, images = trial.classifier, self.trials.held_out.images
        features = trial.proposal.features
        assert isinstance(features, Greedy)
        most = self.limits.rounds(whole, images)
        best: Trial | None = None
        for t in sorted({t for t in _ROUNDS_TRIED if t < most} | ({most} if most else set())):
            found = self.trials.measure(Proposal(replace(features, rounds=t)), whole.at(t))
            if best is None or found.doubt < best.doubt:
                best = replace(found, epochs=trial.epochs, seconds=trial.seconds)
        return best

    def _more(self, best: Trial) -> Trial:
        """Try structures at random while there is time, with a third of the epochs at first."""
        structure, members = best.proposal.structure, best.proposal.members
        if self._options.seconds is None or structure is None:
            return best
        limits = self.limits.part(members)
        design = Design(channels=(structure.channels,), deslanted=(structure.deslanted,))
        data = self.data
        proposals = Proposals(design, limits.budget, data.raster, data.n_classes, seed=self._seed)
        number = 0
        while self._has_time() and proposals.has(number):
            structure = proposals[number].structure
            number += 1
            bits = best.proposal.bits
            if not self.limits.hold(structure, data.raster, data.n_classes, bits, members):
                continue
            proposal = replace(best.proposal, features=structure)
            short = self.trials.run(proposal, max(1, self._epochs // 3))
            self._note(short)
            promising = sorted(trial.doubt for trial in self.done if trial.epochs == short.epochs)
            if short.doubt <= promising[len(promising) // 3] and self._has_time():
                trial = self._try(proposal)
                if trial is not None and is_better(trial, best, _LIKELY):
                    best = trial
        return best


def _least(trial: Trial) -> CompactClassifier:
    """Return the smallest classifier of a trial: that of the first round of a greedy search."""
    greedy = isinstance(trial.proposal.features, Greedy)
    return trial.classifier.at(1) if greedy else trial.classifier


def _all_but_width(structure: Structure) -> dict[str, Any]:
    """Return what :func:`widest` takes of a structure beside its depth."""
    names = ("channels", "head", "n_units", "deslanted")
    return {name: getattr(structure, name) for name in names}
