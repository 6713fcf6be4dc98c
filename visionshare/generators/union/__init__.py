"""Several families side by side."""

from visionshare.generators.union.family import UnionOfFamilies

__all__ = ["UnionOfFamilies"]
