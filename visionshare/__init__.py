"""Feature learning for fast image classifiers: few shared features, found by greedy search.

The public names stand in ``__init__.pyi``. Each is imported when it is first used, so that
``import visionshare`` alone takes milliseconds.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
