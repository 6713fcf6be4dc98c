"""The features of another family on deslanted images."""

from visionshare.generators.deslanted.family import Deslanted

__all__ = ["Deslanted"]
