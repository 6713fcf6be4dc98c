"""Learners: the one greedy loop, and the estimators that are settings of it."""

from visionshare.learners.shareboost import ShareBoost

__all__ = ["ShareBoost"]
