"""Fine-tuning: the parameters of chosen features and all weights move together, by gradients."""

from visionshare.learners.fine_tuning.model import bytes_per_image
from visionshare.learners.fine_tuning.parts import Teacher
from visionshare.learners.fine_tuning.settings import FineTuning, Quantization
from visionshare.learners.fine_tuning.steps import Epoch
from visionshare.learners.fine_tuning.tune import fine_tune

__all__ = ["Epoch", "FineTuning", "Quantization", "Teacher", "bytes_per_image", "fine_tune"]
