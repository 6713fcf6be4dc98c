"""Augmentation: random copies of training images, streamed."""

from visionshare.datasets.augmentation.copies import (
    Augmentation,
    augmented_copies,
    elastic_deformations,
)

__all__ = ["Augmentation", "augmented_copies", "elastic_deformations"]
