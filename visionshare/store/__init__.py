"""Store: feature columns in memory or in write-once HDF5 shards."""

from visionshare.store.array_columns import ArrayColumns
from visionshare.store.columns import Columns

__all__ = ["ArrayColumns", "Columns"]
