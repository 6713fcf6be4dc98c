"""Augmentation: random copies of training images, streamed."""
