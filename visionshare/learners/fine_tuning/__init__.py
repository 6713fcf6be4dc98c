"""Fine-tuning: the parameters of chosen features and all weights move together, by gradients."""

from visionshare.learners.fine_tuning.settings import FineTuning, Quantization
from visionshare.learners.fine_tuning.tune import Epoch, Teacher, bytes_per_image, fine_tune

__all__ = ["Epoch", "FineTuning", "Quantization", "Teacher", "bytes_per_image", "fine_tune"]
