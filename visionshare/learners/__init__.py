"""Learners: greedy refits and column generation, and the estimators that are settings of them."""

from visionshare.learners.bounds import (
    generalization_gap,
    shareboost_features,
    shareboost_rounds,
)
from visionshare.learners.dense import DenseClassifier
from visionshare.learners.fine_tuning import (
    FineTuning,
    Quantization,
    bytes_per_image,
    fine_tune,
)
from visionshare.learners.forward_greedy import ForwardGreedyClassifier, ForwardGreedyRegressor
from visionshare.learners.greedytl import GreedyTL
from visionshare.learners.group_features import GroupFeatureClassifier, GroupFeatureRegressor
from visionshare.learners.jointboost import JointBoost
from visionshare.learners.mixed_norm import MixedNormClassifier
from visionshare.learners.one_against_rest import OneAgainstRest
from visionshare.learners.regularization_path import regularization_path
from visionshare.learners.shareboost import ShareBoost
from visionshare.learners.sparsification import features_needed, sparsify
from visionshare.learners.structural_boosting import (
    StructuralBoostingClassifier,
    StructuralBoostingRegressor,
)

__all__ = [
    "DenseClassifier",
    "FineTuning",
    "ForwardGreedyClassifier",
    "ForwardGreedyRegressor",
    "GreedyTL",
    "GroupFeatureClassifier",
    "GroupFeatureRegressor",
    "JointBoost",
    "MixedNormClassifier",
    "OneAgainstRest",
    "Quantization",
    "ShareBoost",
    "StructuralBoostingClassifier",
    "StructuralBoostingRegressor",
    "bytes_per_image",
    "features_needed",
    "fine_tune",
    "generalization_gap",
    "regularization_path",
    "shareboost_features",
    "shareboost_rounds",
    "sparsify",
]
