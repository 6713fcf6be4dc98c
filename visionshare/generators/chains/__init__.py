"""Chains of small templates, one after the other, each feature a maximum of the last map."""

from visionshare.generators.chains.family import Chains

__all__ = ["Chains"]
