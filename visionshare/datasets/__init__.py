"""Datasets: images and labels from files, folders, arrays, bundled sets and the catalog.

The public names stand in ``__init__.pyi``. Each is imported when it is first used, so that a
classifier that only needs :class:`Preprocessing` does not load the catalog.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
