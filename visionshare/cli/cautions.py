"""Warnings on standard error: results that say less than they seem to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from visionshare.cli.text import one_line, say

if TYPE_CHECKING:
    from visionshare.image_classifier.choice import Choice

# What lets a search try more, by the option that was given.
_MORE = {
    "--time": "a longer --time",
    "--budget": "a larger --budget",
    "--size": "a larger --size",
}


def warn(message: str) -> None:
    """Write a warning on standard error, in one line."""
    say(f"warning: {one_line(message)}", err=True)


def warn_near_majority(
    kind: str, errors: int, n: int, majority: str, majority_error: float
) -> None:
    """Warn of an error that is hardly less than that of always answering the commonest class."""
    from visionshare.reports.results import is_near_majority

    if n and is_near_majority(errors, n, majority_error):
        warn(
            f"{100 * errors / n:.2f} % {kind} error on {n} images is not clearly better than "
            f"always answering {majority!r} ({100 * majority_error:.2f} %)"
        )


def warn_of_one_trial(choice: Choice, given: Sequence[str]) -> None:
    """Warn of a search that had nothing to choose from."""
    allowed = [trial for trial in choice.trials if trial.allowed]
    if len(allowed) > 1:
        return
    bounds = [option for option in given if option in _MORE] or ["--size"]
    ways = " or ".join(_MORE[option] for option in bounds)
    warn(f"only one structure was tried; {ways} allows more")
