"""The search of `visionshare train PICTURES`: what it may cost, what it tries, what it chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.cautions import warn_near_majority, warn_of_one_trial
from visionshare.cli.quantities import budget_limits, seconds_of
from visionshare.cli.text import say

if TYPE_CHECKING:
    from visionshare.image_classifier.recipe_search import SearchedRecipe
    from visionshare.image_classifier.state import SearchSettings
    from visionshare.recipes import Recipe


@dataclass(frozen=True)
class SearchOptions:
    """Search, for your pictures."""

    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LIMITS",
            help="Maximum cost per image: multiply-accumulates (200k), bytes (64KiB), microseconds "
            "(20us) or flash of a microcontroller (flash=10KiB). Default: 1M.",
        ),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Approximate time for search and training: 90s, 5m, 2h."),
    ] = None
    pretrained: Annotated[
        str | None,
        typer.Option(
            metavar="auto|off|FILE",
            help="Features of a pretrained network: auto (default) tries them if "
            "visionshare[pretrained] is installed and the budget allows it; off never does; or"
            " give an ONNX file.",
        ),
    ] = None

    @property
    def limits(self) -> dict[str, float] | None:
        """Limits of what the classifier costs, by name."""
        return None if self.budget is None else budget_limits(self.budget, "--budget")

    @property
    def seconds(self) -> float | None:
        """Seconds of search and training."""
        return None if self.time is None else seconds_of(self.time, "--time")

    @property
    def network(self) -> str | bool:
        """The pretrained network that may be tried, as :class:`ImageClassifier` takes it."""
        return False if self.pretrained == "off" else self.pretrained or "auto"

    @property
    def given(self) -> list[str]:
        """The options that the user gave."""
        return [f"--{name}" for name, value in vars(self).items() if value is not None]


def chosen_recipe(
    base: Recipe,
    out: Path,
    budget: Any,
    settings: SearchSettings,
    bounds: Sequence[str],
    resume: bool,
    jobs: int,
    data_dir: Path | None = None,
    network: str | bool = False,
) -> Recipe:
    """Return the recipe that a search chooses; say what it tries, what it chose and why."""
    from visionshare.image_classifier.budget import Budget
    from visionshare.image_classifier.following import line_of_progress
    from visionshare.image_classifier.pretrained import HINT, is_installed
    from visionshare.image_classifier.recipe_search import (
        CHOSEN,
        OfferedNetwork,
        kept_recipe,
        search_recipe,
    )

    limits = Budget.of(budget)
    is_color = base.data.mode == "color"
    if network == "auto" and budget is None and is_color and not is_installed():
        say(f"hint         {HINT}")
    kept = kept_recipe(base, out, limits) if resume else None
    if kept is not None:
        say(f"chosen       {kept.description} (chosen before: {out / CHOSEN})")
        return kept
    say("search       trials are compared on held-out training pictures")
    # What was tried is logged: --verbose shows it.
    settings = replace(settings, tried=lambda state: say(line_of_progress(state)))
    tried = OfferedNetwork(network, Budget.of(budget, None), "--size" not in bounds)
    found = search_recipe(base, out, limits, settings, jobs, resume, data_dir, tried)
    _say_choice(found)
    warn_of_one_trial(found.choice, bounds)
    say(f"recipe       {out / CHOSEN}")
    return found.recipe


def _say_choice(found: SearchedRecipe) -> None:
    choice = found.choice
    say(f"chosen       {choice.best.proposal}")
    if choice.best.classifier.family.bytes_elsewhere:
        needs = "visionshare[pretrained] has to be installed where the classifier is used"
        say(f"needs        {needs}; use --pretrained off or a smaller --budget to avoid it")
    if choice.is_honest:
        if found.recipe.data.labels is not None:
            precision = f"{100 * (1 - choice.error):.2f} % mean average precision"
            say(f"because      highest confidence on validation images ({precision})")
            return
        if found.recipe.data.target is not None:
            error = f"{100 * choice.error:.2f} % of the error of always answering the median"
            say(f"because      lowest mean absolute error on validation images: {error}")
            return
        sure = 100 * (1 - choice.best.doubt)
        why = f"highest mean confidence on validation images: {sure:.1f} %"
        say(f"because      {why} (error {100 * choice.error:.2f} %)")
        if found.recipe.data.test_fraction == 0:
            # No test error follows that could be warned about.
            n = len(choice.best.doubts)
            warn_near_majority("validation", round(choice.error * n), n, *choice.majority)
    if choice.best.proposal.members > 1:
        say(f"members      {choice.best.proposal.members}, which share the budget")
