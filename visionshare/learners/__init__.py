"""Learners: greedy refits and column generation, and the estimators that are settings of them."""

from visionshare.learners.group_features import GroupFeatureClassifier, GroupFeatureRegressor
from visionshare.learners.shareboost import ShareBoost

__all__ = ["GroupFeatureClassifier", "GroupFeatureRegressor", "ShareBoost"]
