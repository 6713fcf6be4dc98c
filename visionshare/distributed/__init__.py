"""Columns in partitions, and what a learner needs of them: in one process or on a Dask cluster.

Only requests, weights and sums over the examples travel; images and columns stay where they are.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
