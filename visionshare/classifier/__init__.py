"""The compact classifier: a few features, a small weight matrix, one data-only file.

The public names stand in ``__init__.pyi``. Each is imported when it is first used: most uses of a
classifier neither leave it early nor explain it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
