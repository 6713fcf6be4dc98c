"""Store: feature columns in write-once HDF5 shards under an atomic manifest; random draws."""

from visionshare.store.drawn_columns import DrawnColumns
from visionshare.store.maintenance import repair_store, store_info, verify_store
from visionshare.store.opening import create_empty_store, create_store, open_store
from visionshare.store.store_columns import StoreColumns

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
