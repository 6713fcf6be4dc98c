"""Store: feature columns in memory or in write-once HDF5 shards."""

from visionshare.store.anchor_columns import AnchorColumns
from visionshare.store.array_columns import ArrayColumns
from visionshare.store.columns import Columns
from visionshare.store.drawn_columns import DrawnColumns
from visionshare.store.product_columns import ProductColumns
from visionshare.store.store_columns import (
    StoreColumns,
    create_empty_store,
    create_store,
    open_store,
    repair_store,
    store_info,
    verify_store,
)
from visionshare.store.stump_columns import StumpColumns

__all__ = [
    "AnchorColumns",
    "ArrayColumns",
    "Columns",
    "DrawnColumns",
    "ProductColumns",
    "StoreColumns",
    "StumpColumns",
    "create_empty_store",
    "create_store",
    "open_store",
    "repair_store",
    "store_info",
    "verify_store",
]
