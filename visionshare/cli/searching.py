"""The search of `visionshare train PICTURES`: what it may cost, what it tries, what it chose."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from visionshare.cli.cautions import warn_near_majority, warn_of_one_trial
from visionshare.cli.quantities import budget_limits, seconds_of
from visionshare.cli.text import say

if TYPE_CHECKING:
    from visionshare.image_classifier.recipe_search import SearchedRecipe
    from visionshare.image_classifier.trials import Trial
    from visionshare.recipes import Recipe

__all__ = ["SearchOptions", "chosen_recipe"]


@dataclass(frozen=True)
class SearchOptions:
    """What a user says of the search."""

    budget: Any = None
    seconds: float | None = None
    size: str | None = field(default=None, compare=False)
    begun: float = field(default_factory=time.perf_counter, compare=False)

    @staticmethod
    def of(budget: str | None, seconds: str | None, size: str | None = None) -> SearchOptions:
        """Return the options of texts."""
        return SearchOptions(
            None if budget is None else budget_limits(budget, "--budget"),
            None if seconds is None else seconds_of(seconds, "--time"),
            size,
        )

    @property
    def given(self) -> list[str]:
        """The options that the user gave."""
        named = {"--budget": self.budget, "--time": self.seconds}
        return [name for name, value in named.items() if value is not None]


def chosen_recipe(
    base: Recipe,
    out: Path,
    options: SearchOptions,
    resume: bool,
    jobs: int,
    data_dir: Path | None = None,
    client: Any = None,
) -> Recipe:
    """Return the recipe that a search chooses; say what it tries, what it chose and why."""
    from visionshare.image_classifier.budget import Budget
    from visionshare.image_classifier.recipe_search import CHOSEN, kept_recipe, search_recipe
    from visionshare.image_classifier.state import SearchSettings

    budget = Budget.of(options.budget)
    kept = kept_recipe(base, out, budget) if resume else None
    if kept is not None:
        say(f"chosen       {kept.description} (chosen before: {out / CHOSEN})")
        return kept
    say("search       trials are compared on pictures that they do not learn from")
    settings = SearchSettings(
        seconds=options.seconds, begun=options.begun, tried=_say_trial, client=client
    )
    found = search_recipe(base, out, budget, settings, jobs, resume, data_dir)
    _say_choice(found)
    bounds = options.given if options.size is None else [*options.given, "--size"]
    warn_of_one_trial(found.choice, bounds)
    say(f"recipe       {out / CHOSEN}")
    return found.recipe


def _say_trial(trial: Trial) -> None:
    from visionshare.image_classifier.recipe_search import line_of

    say(f"tried        {line_of(trial)}")


def _say_choice(found: SearchedRecipe) -> None:
    choice = found.choice
    say(f"chosen       {choice.best.proposal}")
    if choice.is_honest:
        sure = 100 * (1 - choice.best.doubt)
        why = f"highest mean confidence on validation images: {sure:.1f} %"
        say(f"because      {why} (error {100 * choice.error:.2f} %)")
        if found.recipe.data.test_fraction == 0:
            # No test error follows that could be warned about.
            n = len(choice.best.doubts)
            warn_near_majority("validation", round(choice.error * n), n, *choice.majority)
    if choice.best.proposal.members > 1:
        say(f"members      {choice.best.proposal.members}, which share the budget")
