"""Columns in partitions, and what a learner needs of them: in one process or on a Dask cluster.

Only orders, weights and sums over the examples travel; images and columns stay where they are.
"""

from visionshare.distributed.clients import cluster_client
from visionshare.distributed.columns import DistributedColumns, PartitionedColumns

__all__ = ["DistributedColumns", "PartitionedColumns", "cluster_client"]
