"""Learners in recipes: the kinds of the registry of learners, and the section of each."""

from __future__ import annotations

from functools import cache
from typing import Any

from visionshare.recipes.sections import Section, section_of

DEFAULT_LEARNER = "shareboost"
# Parameters that arrays need, where a recipe's columns know better.
_OF_ARRAYS = {"dense": ("blocks", "copies"), "jointboost": ("n_thresholds",)}
# Learners that search in one way alone.
_SEARCHES = {"jointboost": "stumps"}


class LearnerSection(Section):
    """Settings of a learner, whose class ``kind`` names."""

    kind: str = DEFAULT_LEARNER

    @property
    def search_name(self) -> str:
        """Name of the learner's search; learners without a choice look at all columns."""
        template = getattr(self, "learner", None) or self
        default = _SEARCHES.get(self.kind, "exhaustive")
        return str(getattr(template, "search", default))


def learner_kinds() -> list[str]:
    """Return the kinds of learners, see :data:`visionshare.learners.registry.CLASSIFIERS`."""
    from visionshare.learners.registry import CLASSIFIERS

    return list(CLASSIFIERS)


@cache
def learner_section(kind: str) -> Any:
    """Return the section of a recipe that configures a learner."""
    from visionshare.learners.base import Classifier
    from visionshare.learners.registry import classifier_class

    nested: dict[type, Any] = {}
    if kind != DEFAULT_LEARNER:
        # A learner of many classifiers takes one of them as a template.
        nested[Classifier] = learner_section(DEFAULT_LEARNER)
    return section_of(
        classifier_class(kind),
        leave_out=_OF_ARRAYS.get(kind, ()),
        nested=nested,
        base=LearnerSection,
        kind=(str, kind),
    )
