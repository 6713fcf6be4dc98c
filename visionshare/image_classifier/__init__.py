"""The front door: a classifier that takes images and labels, and chooses all else itself.

``pictures`` makes one array of any images, ``budget`` says what a classifier may cost,
``augmenting`` how copies may differ, ``proposals`` what there is to try, ``trials`` tries one,
``choosing`` is the search, ``estimator`` the class, ``display`` what it shows, and ``comparison``
runs it over budgets.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
