"""The classifiers by name, as recipes and :class:`OneAgainstRest` ask for them."""

from __future__ import annotations

from visionshare.learners.base import Classifier
from visionshare.learners.forward_greedy import ForwardGreedyClassifier
from visionshare.learners.greedytl import GreedyTL
from visionshare.learners.group_features import GroupFeatureClassifier
from visionshare.learners.jointboost import JointBoost
from visionshare.learners.mixed_norm import MixedNormClassifier
from visionshare.learners.one_against_rest import OneAgainstRest
from visionshare.learners.shareboost import ShareBoost
from visionshare.learners.structural_boosting import StructuralBoostingClassifier

__all__ = ["CLASSIFIERS"]

CLASSIFIERS: dict[str, type[Classifier]] = {
    "forward_greedy": ForwardGreedyClassifier,
    "greedytl": GreedyTL,
    "grfl": GroupFeatureClassifier,
    "jointboost": JointBoost,
    "mixed_norm": MixedNormClassifier,
    "one_against_rest": OneAgainstRest,
    "shareboost": ShareBoost,
    "structural_boosting": StructuralBoostingClassifier,
}
