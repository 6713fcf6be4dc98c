"""The registry of learners: the kinds that a recipe names, and where their classes are."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from visionshare.errors import InputError
from visionshare.recipes.sections import Section, section_of

__all__ = ["DEFAULT_LEARNER", "LEARNERS", "LearnerSection", "learner_class", "learner_section"]

DEFAULT_LEARNER = "shareboost"
LEARNERS: dict[str, str] = {
    "shareboost": "visionshare.learners.shareboost:ShareBoost",
    "grfl": "visionshare.learners.group_features:GroupFeatureClassifier",
    "structural": "visionshare.learners.structural_boosting:StructuralBoostingClassifier",
    "mixed-norm": "visionshare.learners.mixed_norm:MixedNormClassifier",
    "jointboost": "visionshare.learners.jointboost:JointBoost",
    "one-against-rest": "visionshare.learners.one_against_rest:OneAgainstRest",
    "forward-greedy": "visionshare.learners.forward_greedy:ForwardGreedyClassifier",
    "greedytl": "visionshare.learners.greedytl:GreedyTL",
}
# Parameters that arrays need, where a recipe's columns know better.
_OF_ARRAYS = {"jointboost": ("n_thresholds",)}
# Learners that search in one way alone.
_SEARCHES = {"jointboost": "stumps"}


class LearnerSection(Section):
    """Settings of a learner, whose class ``kind`` names in :data:`LEARNERS`."""

    kind: str = DEFAULT_LEARNER

    @property
    def search_name(self) -> str:
        """Name of the learner's search; learners without a choice look at all columns."""
        template = getattr(self, "learner", None) or self
        default = _SEARCHES.get(self.kind, "exhaustive")
        return str(getattr(template, "search", default))


def learner_class(kind: str) -> type:
    """Return the class of the learner registered as ``kind``.

    Raises
    ------
    InputError
        If no learner has that name.

    Examples
    --------
    >>> learner_class("jointboost").__name__
    'JointBoost'
    """
    if kind not in LEARNERS:
        raise InputError("kind", kind, " or ".join(map(repr, LEARNERS)))
    module, name = LEARNERS[kind].split(":")
    learner: type = getattr(import_module(module), name)
    return learner


@cache
def learner_section(kind: str) -> Any:
    """Return the section of a recipe that configures a learner.

    Examples
    --------
    >>> learner_section("jointboost")(rounds=5).build(n_jobs=2)
    JointBoost(n_jobs=2, rounds=5)
    """
    nested = {}
    if kind != DEFAULT_LEARNER:
        # A learner of many classifiers takes one of them as a template.
        nested[learner_class(DEFAULT_LEARNER)] = learner_section(DEFAULT_LEARNER)
    return section_of(
        learner_class(kind),
        leave_out=_OF_ARRAYS.get(kind, ()),
        nested=nested,
        base=LearnerSection,
        kind=(str, kind),
    )
