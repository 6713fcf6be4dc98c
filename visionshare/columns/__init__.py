"""Columns: what learners ask for, and the plain kind that lies in memory."""

from visionshare.columns.arrays import ArrayColumns
from visionshare.columns.base import Columns, Span

__all__ = ["ArrayColumns", "Columns", "Span"]
