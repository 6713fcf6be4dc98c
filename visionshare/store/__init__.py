"""Store: feature columns in memory or in write-once HDF5 shards."""

from visionshare.store.drawn_columns import DrawnColumns
from visionshare.store.store_columns import (
    StoreColumns,
    create_empty_store,
    create_store,
    open_store,
    repair_store,
    store_info,
    verify_store,
)

__all__ = [
    "DrawnColumns",
    "StoreColumns",
    "create_empty_store",
    "create_store",
    "open_store",
    "repair_store",
    "store_info",
    "verify_store",
]
