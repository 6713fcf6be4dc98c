"""Which structure is trained next, and for how many epochs: successive halving without brackets.

A structure begins on the first rung, with few epochs; the best of each rung are trained again with
more. Nothing but the table of trials, and the time that is left, decides.

References
----------
K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
AISTATS 2016: successive halving. L. Li et al., "A system for massively parallel hyperparameter
tuning", MLSys 2020: promotion as soon as a rung allows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from visionshare.recipes.design.trials import Trial, best_trial, rank

__all__ = ["Halving", "Next", "rung_epochs"]


@dataclass(frozen=True)
class Next:
    """What to train next: the number of a structure, and a rung."""

    number: int
    rung: int


def rung_epochs(most: int, n_rungs: int, reduction: int, least: int = 1) -> tuple[int, ...]:
    """Return the epochs of each rung; rungs of as many epochs are one."""
    epochs = {max(least, round(most / reduction**k)) for k in range(n_rungs)}
    return tuple(sorted(epochs))


@dataclass(frozen=True)
class Halving:
    """The rule of what is trained next."""

    epochs: tuple[int, ...]
    reduction: int
    seconds: float | None = None
    n_structures: int | None = None

    def next(self, trials: Sequence[Trial], elapsed: float, has_more: bool = True) -> Next | None:
        """Return what to train next; None at the end."""
        # Promotions go before new structures. Where no new one is to come, a rung's best goes on
        # even if there are fewer than ``reduction``.
        number = sum(trial.rung == 0 for trial in trials)
        if number == 0:
            # Without any there would be no recipe, however little time there is.
            return Next(0, 0) if has_more else None
        left = math.inf if self.seconds is None else self.seconds - elapsed
        promoted = self._promotion(trials, left, rounded_up=False)
        if promoted is not None:
            return promoted
        wanted = has_more and (self.n_structures is None or number < self.n_structures)
        if wanted and self._new_fits(trials, left):
            return Next(number, 0)
        return self._promotion(trials, left, rounded_up=True)

    def _promotion(self, trials: Sequence[Trial], left: float, rounded_up: bool) -> Next | None:
        """Return the best trial that may be trained on the next rung in the time that is left."""
        for rung in range(len(self.epochs) - 2, -1, -1):
            ranked = sorted((trial for trial in trials if trial.rung == rung), key=rank)
            n = len(ranked) // self.reduction
            if rounded_up and len(ranked) % self.reduction:
                n += 1
            above = {trial.number for trial in trials if trial.rung == rung + 1}
            for trial in ranked[:n]:
                fits = trial.error is not None and self._estimate(trial, rung + 1) <= left
                if trial.number not in above and fits:
                    return Next(trial.number, rung + 1)
        return None

    def _estimate(self, trial: Trial, rung: int) -> float:
        return trial.seconds_per_epoch * self.epochs[rung]

    def _new_fits(self, trials: Sequence[Trial], left: float) -> bool:
        """Return whether a new structure leaves the time to train the best one on all rungs."""
        # That time is at most half of all: a search of few seconds still tries several
        # structures.
        if self.seconds is None:
            return True
        first = [trial.seconds for trial in trials if trial.rung == 0]
        best, reserve = best_trial(trials), 0.0
        if best is not None:
            # Of several the one that is furthest has the shortest way to go.
            rungs = range(best.rung + 1, len(self.epochs))
            reserve = min(sum(self._estimate(best, rung) for rung in rungs), self.seconds / 2)
        # The very first trial may have waited for compilers.
        return median_low(first) + reserve <= left
