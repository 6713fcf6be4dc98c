"""What people do with features and classifiers.

The public names stand in ``__init__.pyi``. Each is imported when it is first used: a prediction
does not wait for what extracts or segments.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
