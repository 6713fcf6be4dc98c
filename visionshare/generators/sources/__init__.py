"""Scores of other classifiers."""

from visionshare.generators.sources.family import SourceClassifiers

__all__ = ["SourceClassifiers"]
