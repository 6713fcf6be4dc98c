"""The compact classifier: a few features, a small weight matrix, one data-only file."""

from visionshare.classifier.card import model_card
from visionshare.classifier.compact import CompactClassifier
from visionshare.classifier.early_exit import EarlyExit, ExitFigures, ExitStage
from visionshare.classifier.ensemble import averaged
from visionshare.classifier.exit_learning import learn_exit_rule
from visionshare.classifier.exit_rule import ExitRule
from visionshare.classifier.explanation import Explanation, explain
from visionshare.classifier.path import PathStep

__all__ = [
    "CompactClassifier",
    "EarlyExit",
    "ExitFigures",
    "ExitRule",
    "ExitStage",
    "Explanation",
    "PathStep",
    "averaged",
    "explain",
    "learn_exit_rule",
    "load",
    "model_card",
]

load = CompactClassifier.load
