"""The compact classifier: a few features, a small weight matrix, one data-only file."""

from visionshare.classifier.compact import CompactClassifier
from visionshare.classifier.path import PathStep

__all__ = ["CompactClassifier", "PathStep", "load"]

load = CompactClassifier.load
