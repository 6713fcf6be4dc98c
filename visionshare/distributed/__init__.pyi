# The one list of public names: read by type checkers, and by `__init__.py` when it is imported.

from .clients import cluster_client as cluster_client
from .columns import DistributedColumns as DistributedColumns
from .columns import PartitionedColumns as PartitionedColumns

__all__ = ["DistributedColumns", "PartitionedColumns", "cluster_client"]
