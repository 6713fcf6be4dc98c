"""Losses: value, derivative and curvature of the scores. Pure functions of arrays.

A loss of all classes' scores together is a :class:`Loss` (``multiclass``); ``TASK_LOSSES`` holds
those of one number an example, as one-against-all classes and regression have (``separable``).
``SoftTargets`` compares scores with a teacher's. Coverage is a measure of scores alone.
"""

from visionshare.losses.multiclass import Loss, MulticlassLogistic, checked_margin
from visionshare.losses.multinomial import Multinomial
from visionshare.losses.separable import (
    TASK_LOSSES,
    Absolute,
    Exponential,
    Hinge,
    ImportanceLoss,
    Insensitive,
    Logistic,
    Squared,
    SquaredHinge,
    TaskLoss,
    make_task_loss,
)
from visionshare.losses.smoothed import Smoothed
from visionshare.losses.soft_targets import SeveralTargets, SoftTargets

__all__ = [
    "TASK_LOSSES",
    "Absolute",
    "Exponential",
    "Hinge",
    "ImportanceLoss",
    "Insensitive",
    "Logistic",
    "Loss",
    "MulticlassLogistic",
    "Multinomial",
    "SeveralTargets",
    "Smoothed",
    "SoftTargets",
    "Squared",
    "SquaredHinge",
    "TaskLoss",
    "checked_margin",
    "make_task_loss",
]
