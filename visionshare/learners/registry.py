"""The classifiers by name, as recipes and :class:`OneAgainstRest` ask for them.

Modules are named and imported when asked for: a learner may look up another.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from visionshare.generators.checks import check_choice

if TYPE_CHECKING:
    from visionshare.learners.base import Classifier

CLASSIFIERS = {
    "dense": "visionshare.learners.dense:DenseClassifier",
    "forward_greedy": "visionshare.learners.forward_greedy:ForwardGreedyClassifier",
    "greedytl": "visionshare.learners.greedytl:GreedyTL",
    "grfl": "visionshare.learners.group_features:GroupFeatureClassifier",
    "jointboost": "visionshare.learners.jointboost:JointBoost",
    "mixed_norm": "visionshare.learners.mixed_norm:MixedNormClassifier",
    "one_against_rest": "visionshare.learners.one_against_rest:OneAgainstRest",
    "shareboost": "visionshare.learners.shareboost:ShareBoost",
    "structural_boosting": "visionshare.learners.structural_boosting:StructuralBoostingClassifier",
}


def classifier_class(name: str) -> type[Classifier]:
    """Return the class of the learner with a name in ``CLASSIFIERS``."""
    check_choice("learner", name, CLASSIFIERS)
    module, attribute = CLASSIFIERS[name].split(":")
    return getattr(import_module(module), attribute)
