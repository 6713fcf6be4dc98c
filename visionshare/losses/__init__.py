"""Losses: value, derivative and curvature of the scores. Pure functions of arrays.

A loss of all classes' scores together is a :class:`Loss` (``multiclass``); ``TASK_LOSSES`` holds
those of one number an example, as one-against-all classes and regression have (``separable``).
``SoftTargets`` compares scores with a teacher's. Coverage is a measure of scores alone.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
