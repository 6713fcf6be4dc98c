"""What a user reads while a search runs: how far it is, the best so far, and the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.image_classifier.state import StructureSearch
from visionshare.image_classifier.trials import Trial
from visionshare.machine.progress import about


def line_of(trial: Trial) -> str:
    """Return a line about a trial: its error, how sure it is, its cost, and what it was."""
    # How sure it is, the mean probability of the true classes, is what trials are compared by.
    beyond = "" if trial.allowed else " (beyond the budget)"
    error = 100 * trial.error
    sure = 100 * (1 - trial.doubt)
    macs = f"{trial.classifier.macs:,}"
    return f"{error:6.2f} % error {sure:5.1f} % sure {macs:>11} macs  {trial.proposal}{beyond}"


def line_of_progress(state: StructureSearch) -> str:
    """Return a line after a trial, such as "trial 5 of about 18, best so far 6.7 % …"."""
    pictures = "held-out" if state.is_honest else "training"
    best = "none within the budget so far"
    if state.best is not None:
        best = f"best so far {100 * state.best.error:.1f} % on {pictures} pictures"
    number = f"trial {len(state.done)} of about {_n_expected(state)}"
    return f"{number}, {best}, about {about(_seconds_left(state))} left"


def teller(verbose: Any) -> Callable[[StructureSearch], None] | None:
    """Return what tells of trials on standard error; None where nothing is to be told."""
    if not isinstance(verbose, (int, np.integer)) or not 0 <= verbose <= 2:
        raise InputError("verbose", verbose, "False, True or 1 (a line per trial), or 2 (two)")

    def tell(state: StructureSearch) -> None:
        lines = [line_of_progress(state), line_of(state.done[-1])]
        sys.stderr.write("".join(f"{line}\n" for line in lines[:verbose]))

    return tell if verbose else None


def _n_expected(state: StructureSearch) -> int:
    """Return how many trials there will be about."""
    n = len(state.done) + state.waiting
    n += sum(len(list(stage(state))) for stage in state.later)
    settings = state.settings
    if settings.seconds is None:
        return n
    # What time is left to search is filled with structures at random.
    spare = max(0.0, settings.left - settings.seconds / 2)
    in_time = len(state.done) + int(spare / _seconds_of_trial(state))
    return in_time if state.structure is not None else min(n, in_time)


def _seconds_of_trial(state: StructureSearch) -> float:
    """Return the mean seconds of the usual trials."""
    usual = [trial.seconds for trial in state.done if trial.epochs <= state.epochs]
    return max(1e-3, float(np.mean(usual or [state.done[-1].seconds])))


def _seconds_left(state: StructureSearch) -> float:
    """Return about how many seconds search and training still take."""
    settings = state.settings
    if settings.seconds is not None:
        return max(0.0, settings.left)
    # 1) the other trials
    trials = (_n_expected(state) - len(state.done)) * _seconds_of_trial(state)
    # 2) the last training, a calibration before it, and a refit after it
    best = state.best or state.done[-1]
    n = state.data.n + settings.n_refit
    if best.proposal.structure is None:
        return trials + best.seconds * n / state.trials.n
    n += min(settings.n_calibrating, state.trials.n) * state.is_honest
    # While members wait to be tried, they are expected.
    members = max(best.proposal.members, state.members) / best.proposal.members
    per_epoch = (best.seconds - best.choosing) / max(1, best.epochs)
    return trials + members * (best.choosing + per_epoch * state.data.epochs * n / state.trials.n)
