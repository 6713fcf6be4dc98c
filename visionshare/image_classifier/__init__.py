"""The estimator that takes images and labels, and searches for the structure of the classifier.

``search`` runs the ``stages`` over one record (``state``); ``proposals`` are what there is to try,
``trials`` learn one each, and ``comparison`` runs the search over several budgets.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
