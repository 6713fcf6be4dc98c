"""Pooled activations of a pretrained network."""

from visionshare.generators.pretrained.family import PretrainedNetwork

__all__ = ["PretrainedNetwork"]
