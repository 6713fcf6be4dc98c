"""Columns: a matrix of examples by features that is only ever asked for columns.

:class:`Columns` is what learners and searches work on, :class:`ArrayColumns` has all values in
memory, :class:`SparseColumns` those that are not zero. Others are in `visionshare.store` (on disk;
random draws) and in the folders of families whose columns are computed from something smaller
(anchors, stumps, monomials).
"""

from visionshare.columns.arrays import ArrayColumns
from visionshare.columns.base import Columns, Span, Totals
from visionshare.columns.sparse import SparseColumns

__all__ = ["ArrayColumns", "Columns", "Span", "SparseColumns", "Totals"]
