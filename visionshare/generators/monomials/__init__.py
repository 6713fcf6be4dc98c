"""Products of features of another family."""

from visionshare.generators.monomials.columns import ProductColumns
from visionshare.generators.monomials.family import Monomials

__all__ = ["Monomials", "ProductColumns"]
