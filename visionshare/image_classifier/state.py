"""What a search is asked for, and what it knows at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from visionshare.datasets import Augmentation
from visionshare.errors import InputError, MemoryLimitError
from visionshare.generators import FeatureFamily
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.proposals import Data, Proposal, widest
from visionshare.image_classifier.structure import VARIANTS, Structure
from visionshare.image_classifier.transfer import Transfer
from visionshare.image_classifier.trials import Trial, Trials
from visionshare.solvers import OPTIMIZERS


def check_seconds(seconds: Any) -> None:
    """Check the time that a search may take."""
    is_number = isinstance(seconds, Real) and not isinstance(seconds, bool)
    if seconds is not None and (not is_number or not 0 < float(seconds) < np.inf):
        raise InputError("time", seconds, "seconds above 0, or None")


@dataclass(frozen=True)
class SearchSettings:
    """What the user says of a search, and the numbers that it is made with."""

    #: "auto", the name of a pool, or an object.
    features: str | FeatureFamily = "auto"
    augment: str | bool | Augmentation = "auto"
    #: Time for search and training.
    seconds: float | None = None
    #: When they began, as the clock says.
    begun: float = field(default_factory=time.perf_counter)
    #: Called with the state after each trial, the last of ``done``.
    tried: Callable[[StructureSearch], None] | None = None
    #: Client of the cluster whose workers learn the trials.
    client: Any = None
    #: Images that most trials learn from. Some thousands tell structures apart.
    n_learning: int = 5000
    #: Images that longer trials learn from, and that all are compared on, at most.
    n_learning_longer: int = 20_000
    n_compared: int = 5000
    #: Images that the last trial learns from, which says how sure the classifier is.
    n_calibrating: int = 5000
    #: Augmentations are compared once more where there are so many times the images of a trial.
    many: float = 2.0
    #: Up to so many images, pools are searched greedily too.
    n_greedy: int = 6000
    #: By how many standard errors of the paired difference a change has to be better.
    likely: float = 0.5
    sure: float = 1.0
    #: The same for images without copies, which pay off in more epochs than a trial has.
    plain: float = 2.0
    #: By how many standard errors an augmentation may be behind and is still compared once more.
    close: float = 2.0
    #: Classifiers that share the budget, where several do.
    members: int = 3
    #: Variants of the best structure that are tried too, of
    #: :data:`visionshare.image_classifier.structure.VARIANTS`; each is one more trial.
    variants: Sequence[str] = ()
    #: The optimizer of fine-tuning: "adam" or "muon".
    optimizer: str = "adam"
    #: Size of heads with units, and smoothing of labels.
    n_units: int = 32
    smoothing: float = 0.1
    #: Where flash is limited: bits at first, and bits of templates that are tried afterwards.
    template_bits: int = 4
    weight_bits: int = 4
    other_template_bits: tuple[int, ...] = (2, 8)
    #: Rounds of a greedy search in a pool that the user names; fewer are compared on its path.
    rounds: int = 150
    compared_rounds: tuple[int, ...] = (5, 10, 20, 40, 60, 80, 100, 120)
    #: Trials that half of the seconds are divided among.
    trials_in_time: int = 20
    #: Fraction of the budget that a random structure uses at least: small ones are many, and rarely
    #: the best.
    least_use: float = 0.25
    #: A pretrained network that is tried too.
    transfer: Transfer | None = None
    #: Pictures that the final classifier is trained on.
    n_refit: int = 0
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        if isinstance(self.variants, str) or not set(self.variants) <= set(VARIANTS):
            raise InputError("variants", self.variants, f"some of {', '.join(VARIANTS)}")
        if self.optimizer not in OPTIMIZERS:
            raise InputError("optimizer", self.optimizer, " or ".join(map(repr, OPTIMIZERS)))

    @property
    def left(self) -> float:
        """Seconds that are left, infinitely many without a limit."""
        if self.seconds is None:
            return np.inf
        return self.seconds - (self.clock() - self.begun)


@dataclass
class StructureSearch:
    """All that a search knows; its steps are functions that change it."""

    settings: SearchSettings
    #: What is known of all training images.
    data: Data
    #: Limits; measured multiply-accumulates stand for a limit of microseconds.
    budget: Budget
    #: Trials on few of the learning images, and on all.
    trials: Trials
    longer: Trials
    #: Epochs of a trial.
    epochs: int
    #: Members that share the budget, for as long as trials are of one of them.
    members: int = 1
    #: Bits of structures, where flash is limited.
    bits: Bits | None = None
    #: Trials in their order.
    done: list[Trial] = field(default_factory=list)
    #: Proposals of the present stage that are not tried yet.
    waiting: int = 0
    #: Stages that follow.
    later: Sequence[Callable[[StructureSearch], Iterable[Proposal]]] = ()
    best: Trial | None = None
    #: Seconds kept for trying a pretrained network.
    reserved: float = 0.0
    #: Why the last failed trial failed.
    problem: InputError | MemoryLimitError | None = None

    @staticmethod
    def of(data: Data, trials: Trials, budget: Budget, settings: SearchSettings) -> StructureSearch:
        """Return the state that a search begins with."""
        short = trials.fewer(settings.n_learning)
        state = StructureSearch(
            settings, data, budget, short, trials, short.learner.counted.epochs // 3
        )
        state.epochs = max(8, state.epochs)
        if budget.flash is not None:
            state.bits = Bits(settings.template_bits, settings.weight_bits)
        elif state.searches_structures:
            # Means of several classifiers have floats.
            state.members = settings.members
        return state

    @property
    def searches_structures(self) -> bool:
        """Whether images are given, and no pool to choose features from."""
        return self.settings.features == "auto" and self.trials.held_out.images.ndim > 2

    @property
    def proposal(self) -> Proposal:
        """The best proposal; there has to be one."""
        assert self.best is not None
        return self.best.proposal

    @property
    def structure(self) -> Structure | None:
        """The structure of the best trial, where it has one."""
        return None if self.best is None else self.best.proposal.structure

    @property
    def is_honest(self) -> bool:
        """Whether trials are compared on images that they do not learn from."""
        return self.longer.held_out is not self.longer.learner.images

    def note(self, trial: Trial) -> None:
        """Keep a trial."""
        self.done.append(trial)
        self.waiting = max(0, self.waiting - 1)

    def tell(self) -> None:
        """Tell of the last trial, once it is known whether it is the best."""
        if self.settings.tried is not None:
            self.settings.tried(self)

    def widest(self, depth: int, **others: Any) -> Structure | None:
        """Return the widest structure of so many layers within the budget."""
        options = {"bits": self.bits, "members": self.members, **others}
        return widest(self.data, self.budget, depth, **options)

    def has_time(self, seconds: float | None = None) -> bool:
        """Return whether so many seconds, by default a trial's, are left to search with."""
        settings = self.settings
        if settings.seconds is None:
            return True
        if seconds is None:
            seconds = max(trial.seconds for trial in self.done if trial.epochs <= self.epochs)
        return settings.left - seconds - self.reserved > settings.seconds / 2

    def reserve(self) -> None:
        """Keep time to try a pretrained network if there are few pictures."""
        settings = self.settings
        transfer = settings.transfer
        if settings.seconds is None or transfer is None or not transfer.suits(self.trials.learner):
            return
        if self.data.n <= 2 * transfer.n_sample:
            # One trial, then the final training on its features.
            needed = 2.5 * self.data.n * transfer.per_picture
            self.reserved = min(needed, settings.seconds / 4)
