"""The compact classifier: a few features, a small weight matrix, one data-only file."""

from visionshare.classifier.compact import CompactClassifier
from visionshare.classifier.early_exit import EarlyExit, ExitFigures, ExitStage
from visionshare.classifier.ensemble import averaged
from visionshare.classifier.exit_learning import learn_exit_rule
from visionshare.classifier.exit_rule import ExitRule
from visionshare.classifier.path import PathStep

__all__ = [
    "CompactClassifier",
    "EarlyExit",
    "ExitFigures",
    "ExitRule",
    "ExitStage",
    "PathStep",
    "averaged",
    "learn_exit_rule",
    "load",
]

load = CompactClassifier.load
