"""Learners: greedy refits and column generation, and the estimators that are settings of them."""

from visionshare.learners.dense import DenseClassifier
from visionshare.learners.fine_tuning import (
    FineTuning,
    Quantization,
    bytes_per_image,
    fine_tune,
)
from visionshare.learners.greedytl import GreedyTL
from visionshare.learners.group_features import GroupFeatureClassifier, GroupFeatureRegressor
from visionshare.learners.mixed_norm import MixedNormClassifier
from visionshare.learners.regularization_path import regularization_path
from visionshare.learners.shareboost import ShareBoost
from visionshare.learners.structural_boosting import (
    StructuralBoostingClassifier,
    StructuralBoostingRegressor,
)

__all__ = [
    "DenseClassifier",
    "FineTuning",
    "GreedyTL",
    "GroupFeatureClassifier",
    "GroupFeatureRegressor",
    "MixedNormClassifier",
    "Quantization",
    "ShareBoost",
    "StructuralBoostingClassifier",
    "StructuralBoostingRegressor",
    "bytes_per_image",
    "fine_tune",
    "regularization_path",
]
